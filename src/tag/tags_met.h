/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAGS_MET_H
#define TAG_TAGS_MET_H

/*
 * The tags that the process has used so far, by account. A fork child writes those whose module is still loaded to its
 * own ledger.
 *
 * Runs in: target, cold paths. Threads: any; the thread that first uses a tag writes its record.
 * Owns: reserved memory, made writable as accounts are added.
 */

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "target/deferred_match.h"

/* An entry of the map of objects has 20 bits for the index of an account's counters (ledger_index_of()). An account has
 * 16 sets of counters (LEDGER_ACCOUNT_SHARDS), so the index has 4 bits more than the number of the account. */
#define TAGS_MET_MOST (1u << 16)

struct tag_met {
    struct deferred_target place;
    const struct link_map *map;
    uint64_t calls; /* see tag_ledger_rule_calls() */
    uint32_t line;
};

/** NULL: there is no memory, and tags get no accounts. */
extern struct tag_met *tags_met;

/** Reserves the array. Called once, when the process begins. */
void tags_met_begin(void);
/** Makes the record of the account writable. False: there is no memory. */
bool tags_met_reach(uint32_t account);

#endif
