/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_LEDGER_MAKE_H
#define WIRE_LEDGER_MAKE_H

/*
 * Makes a ledger, from inside the target: its file, its mapping, its control page. ledger_grow.h lets it grow.
 *
 * Runs in: target, cold paths only.
 * Owns: the mapping, until the image ends; no descriptor stays open.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "wire/ledger.h"
#include "wire/ledger_grow.h"

struct ledger_config {
    char dir[LEDGER_PATH_BYTES];         /* asked for by who started us; "": the user's default directory */
    char runtime_dir[LEDGER_PATH_BYTES]; /* XDG_RUNTIME_DIR, "": none */
    uint64_t limit_bytes;
    uint64_t image_id;
    uint64_t period_bytes;
    bool samples, tags, sites; /* what it is for */
    /* What tags are asked when it begins: a whole page, and a list behind it. NULL: nothing. */
    const struct ledger_control *asked;
};

/** A control page that asks for nothing. */
extern const struct ledger_control ledger_no_control __attribute__((visibility("hidden")));
/**
 * Creates file, mapping, header and first pages. 0 or -errno; on failure nothing is left behind.
 * A process that may not use the recorder's directory it was told (by now it runs as another user, say) makes one of
 * the same name in its own user's directory of ledgers, where the recorder looks as well.
 */
ONE_COPY int ledger_make(struct ledger *l, const struct ledger_config *config);
/** Fork children shall find its control page, too: tags look at it until they have their own. */
void ledger_keep_control(struct ledger *l);
/**
 * The directory it makes a ledger in, opened; its path, "" on failure. `make`: if it is not there. -errno: there is
 * none.
 */
ONE_COPY long ledger_open_dir(const struct ledger_config *config, char dir[static LEDGER_PATH_BYTES],
                              bool make);
/** The last part of the directory `asked`, "/run-...", if it is a recorder's; else "". */
const char *ledger_recorder_name(const char *asked);
/** How much of the target's address space the ledger takes. */
static inline uint64_t ledger_mapped_bytes(const struct ledger_header *h)
{
    const struct ledger_region *last = &h->regions[LEDGER_TABLES - 1];
    return last->offset + last->limit_bytes;
}

#endif
