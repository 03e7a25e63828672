/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_DEFERRED_MATCH_H
#define TARGET_DEFERRED_MATCH_H

/*
 * Finds the deferred rules (wire/deferred_rules.h) that apply to a place in the code, if `allium set` could not apply
 * them itself: the place's module was loaded later, or no file lists the place (call sites, tags of callsite_tag()).
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Invariant: any process of the user may have written the rules, so the rules are checked at each use.
 */

#include <stdbool.h>
#include <stdint.h>

struct ledger_deferred;

/* A place in the code: a tag, or a call that allocates. */
struct deferred_target {
    uint64_t key;     /* ledger_action_key() or ledger_site_key() */
    uint64_t module;  /* ledger_module_key(); 0: `allium set` cannot list the places of this module */
    const char *code; /* address of the place */
    const char *text; /* class and name, two NUL-terminated texts one after the other; NULL: none */
    const char *file; /* source file of the place; NULL: none */
    /* Lower half: the last result of deferred_fits(); upper half: the state of the control page at that time. */
    uint64_t fits;
};

/**
 * Returns a word in which bit i is set if rule i of *k applies to the place (i < `queries`). No rule applies if the
 * place's module is in k->resolved, because `allium set` has already applied all rules to that module. The result is
 * cached in *place until `state`, the state of the control page, changes.
 */
uint32_t deferred_fits(const struct ledger_deferred *k, uint32_t queries, uint32_t state,
                       struct deferred_target *place);

#endif
