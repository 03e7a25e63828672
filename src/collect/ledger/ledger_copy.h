/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_LEDGER_COPY_H
#define COLLECT_LEDGER_COPY_H

/*
 * A copy of a ledger, taken while its target goes on writing. First everything is copied with pread (so that
 * a file that shrinks cannot raise SIGBUS), then the copy is checked.
 *
 * Runs in: the tool. Owns: the copied tables, until ledger_copy_release().
 * Invariant: after ledger_copy_read(), `count[t]` records of table t are in memory, whatever the file
 * claimed; strings end with a NUL within their table. Indices inside records must still be checked at each
 * use.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/ledger.h"

struct ledger_copy {
    struct ledger_header header;
    void *table[LEDGER_TABLES];
    uint64_t count[LEDGER_TABLES];
    uint64_t torn_samples; /* left out, because they changed at each of several readings */
    double ticks_per_ns;   /* rate of the ledger's clock */
    /* When the copy began. It has everything that was recorded before, and some of what was recorded
     * meanwhile. */
    uint64_t taken_ticks, taken_realtime_ns;
};

/** Copies only the header: totals for a curve. Returns 0, or -errno with a line in `e`. */
int ledger_copy_header(int fd, struct ledger_header *h, struct error *e);
/** Returns whether a tag ever got an account in it. */
static inline bool ledger_copy_has_tags(const struct ledger_header *h)
{
    return h->regions[LEDGER_TAGS].used != 0;
}
/** Copies everything. Returns 0; -EPROTO: not a ledger, or of another version; or -errno of a failed read. */
int ledger_copy_read(int fd, struct ledger_copy *c, struct error *e);
void ledger_copy_release(struct ledger_copy *c);

/** Converts the ledger's ticks to CLOCK_REALTIME; 0 for 0, and for times before 1970. */
uint64_t ledger_copy_realtime(const struct ledger_copy *c, uint64_t ticks);

#define ledger_copy_at(c, t, type, i) (&((type *)(c)->table[t])[i])

#endif
