/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_STATE_ROWS_H
#define CLI_STATE_ROWS_H

/*
 * What the kernel told of its memory (collect/kernel/kernel_state.h) in a recording: rows of a file's path and its
 * text, taken at several moments. A text that is the same as at the moment before is not stored again; those of
 * KERNEL_STATE_KERNEL are there once, at the first moment.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include <stdint.h>

#include "base/error.h"
#include "collect/kernel/kernel_state.h"
#include "store/recording.h"

/** Adds the state at a moment (CLOCK_REALTIME). `before`: that at the moment before. Returns 0, or -errno with a line.
 */
int state_rows_put(struct recording *r, const struct kernel_state *s, const struct kernel_state *before,
                   uint64_t taken_ns, struct error *e);

/** The states of a recording, in the order of their times. */
struct state_rows {
    struct VEC(struct state_moment {
        uint64_t taken_ns;
        struct kernel_state state;
    }) moments;
    /* of the recorded machine; of the one that runs here if the recording does not tell it */
    uint64_t page_bytes;
};
/** Reads all states; there may be none. Returns as above; the caller releases `out` in any case. */
int state_rows_load(struct state_rows *out, const char *path, struct error *e);
/** Returns the newest text of a file at the given moment or before; NULL: there is none. */
const char *state_rows_text(const struct state_rows *s, size_t moment, const char *path);
void state_rows_release(struct state_rows *s);

#endif
