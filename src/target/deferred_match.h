/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_DEFERRED_MATCH_H
#define TARGET_DEFERRED_MATCH_H

/*
 * Which of the queries that are kept for modules loaded later (wire/deferred_rules.h) fit a place.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Invariant: what is kept was written by anybody; it is checked at each use.
 */

#include <stdbool.h>
#include <stdint.h>

struct ledger_deferred;

/* What the process knows of a place. */
struct deferred_target {
    uint64_t key,
        module; /* ledger_action_key() or ledger_site_key(); ledger_module_key(), 0: nobody knows its places */
    const char *code;
    const char *text; /* class and name, one behind the other; NULL: none */
    const char *file; /* NULL: none */
    uint64_t fits;    /* what was found of it, and at which state of the page */
};

/**
 * Bits, by query, of those that fit; none where the module is settled. It is found out once for each state of the page.
 */
uint32_t deferred_fits(const struct ledger_deferred *k, uint32_t queries, uint32_t state,
                       struct deferred_target *place);

#endif
