/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ATTACH_ENTRIES_H
#define ATTACH_ENTRIES_H

/*
 * The entries of an allocator's functions, and the jumps that take their place (wire/attach_state.h).
 *
 * Runs in: the tool.
 */

#include "attach/stop.h"
#include "attach/target_process.h"
#include "wire/attach_state.h"

/** Jumps to be written, and what is there now. */
struct entries {
    struct attach_entry at[ATTACH_COUNT];
    uint8_t jump[ATTACH_COUNT][8];
    uint8_t code[ATTACH_COUNT][ATTACH_CODE_BYTES]; /* the displaced instructions, and the jump behind them */
    char library[64];                              /* of the functions */
    unsigned functions; /* how many entries there are; several names can share one */
};

/**
 * Finds the allocator's functions, and computes for each a jump to the agent's, and the code that goes to
 * allium_attach_code. Changes nothing. Returns 0, or -errno with a line: one of them cannot be replaced.
 */
int entries_find(struct target *t, const struct target_module *agent, struct entries *out, struct error *e);
/**
 * Returns whether no stopped thread is within instructions that are displaced, or will return there.
 */
bool entries_are_free(const struct target *t, const struct stopped *s, const struct attach_entry *at);
/** Sets is_patched of each by what stands there: a tool that was killed has told nobody what it had done. */
void entries_look(const struct target *t, struct attach_entry *at);
/** Writes the jumps, those of functions that free first. Returns 0 or -errno; then none is there. */
int entries_patch(const struct target *t, struct entries *n);
/** Writes back what was there, in the reverse order. Returns how many were patched, or -errno. */
int entries_restore(const struct target *t, struct attach_entry *at);

#endif
