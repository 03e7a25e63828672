/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAGS_MET_H
#define TAG_TAGS_MET_H

/*
 * An array of the tags that the process has used so far, by account number. A fork child writes to its own ledger the
 * tags whose module is still loaded.
 *
 * Runs in: target, cold paths. Threads: any; the thread that first uses a tag writes the record of the tag.
 * Owns: the array, in reserved memory, which is made writable as accounts are added.
 */

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "target/deferred_match.h"

/* Account numbers are less than this. An entry of the map of objects has 20 bits for the index of an account's counters
 * (ledger_index_of()). An account has 16 sets of counters (LEDGER_ACCOUNT_SHARDS), so its number has 16 bits. */
#define TAGS_MET_MOST (1u << 16)

struct tag_met {
    struct deferred_target place;
    const struct link_map *map;
    uint64_t calls; /* for tag_control_fails() */
    uint32_t line;
};

/** The array, by account number. NULL: there is no memory for it, and tags get no accounts. */
extern struct tag_met *tags_met;

/** Reserves the array. Called once, when the library is initialised. */
void tags_met_begin(void);
/** Makes the record of the account writable. False: there is no memory, or no system call may be made. */
bool tags_met_reach(uint32_t account);

#endif
