/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_DEFERRED_RULES_H
#define WIRE_DEFERRED_RULES_H

/*
 * Deferred rules: rules for places that `allium set` does not know, because their module is loaded later or because no
 * file lists them (call sites, tags of callsite_tag()). The control file stores the query of each such rule.
 * The process itself evaluates the queries for its tags and call sites, because no tool may be running when a module is
 * loaded. The process knows less about a place than the tool does (base/sigsafe/clause.h).
 *
 * The tool has already applied all rules to the modules in `resolved`, and has written the results to the list of
 * actions. If a place in any other module has no entry in that list, the process applies each query that matches the
 * place, in the order of the queries.
 *
 * Runs in: the tool (writer) and target (reader).
 */

#include <stddef.h>

#include "wire/ledger.h"

#define LEDGER_QUERIES_MOST 32u
#define LEDGER_QUERY_TEXT   928u
#define LEDGER_QUERY_CLAUSE 1040u
struct ledger_query {
    struct ledger_action action; /* `key` is not used */
    /* bits 1 << enum ledger_action_kind: kinds of actions to remove from the place before `action` is added */
    uint32_t clear;
    uint32_t clause_bytes; /* used bytes of `clause` */
    uint64_t pad;
    char text[LEDGER_QUERY_TEXT]; /* the query as text, for people and for the tool; NUL-terminated */
    /* the query in the form for clause_judge() */
    uint8_t clause[LEDGER_QUERY_CLAUSE];
};

/*
 * The control file has two structures of this type after the two lists of actions, one for each list. The file has
 * memory for each structure only up to the last query in use.
 */
#define LEDGER_RESOLVED_MOST 511u
struct ledger_deferred {
    uint64_t n_resolved;
    /* ledger_module_key() of each module to which the tool has applied all rules */
    uint64_t resolved[LEDGER_RESOLVED_MOST];
    struct ledger_query queries[LEDGER_QUERIES_MOST];
};
/* size of a struct ledger_deferred with `n` queries; 0 if `n` is 0 */
#define LEDGER_DEFERRED_BYTES(n)                                                                             \
    ((n) ? offsetof(struct ledger_deferred, queries) + (n) * sizeof(struct ledger_query) : 0)

/* size in bytes of a control file that can have rules */
#define LEDGER_CONTROL_TAG_BYTES                                                                             \
    (LEDGER_PAGE_BYTES + 2 * LEDGER_ACTIONS_BYTES + 2 * sizeof(struct ledger_deferred))

_Static_assert(sizeof(struct ledger_query) == 2048 && sizeof(struct ledger_deferred) % LEDGER_PAGE_BYTES == 0,
               "parts begin on pages");

/* The number of actions and the number of queries in `listed` of the control page. They share one word, so that a
 * reader always sees two numbers that belong together. */
#define LEDGER_QUERIES_SHIFT 24
_Static_assert(LEDGER_ACTIONS_MOST < 1u << LEDGER_QUERIES_SHIFT && LEDGER_QUERIES_MOST < 0x7f,
               "there is room for both");
static inline uint32_t ledger_listed_actions(uint32_t listed)
{
    return listed & ((1u << LEDGER_QUERIES_SHIFT) - 1);
}
static inline uint32_t ledger_listed_queries(uint32_t listed)
{
    return (listed & ~LEDGER_ACTIONS_SECOND) >> LEDGER_QUERIES_SHIFT;
}

/** Returns the offset, in bytes, of the list of actions in force from the start of the control file. */
static inline uint64_t ledger_list_offset(uint32_t listed)
{
    return LEDGER_PAGE_BYTES + (listed & LEDGER_ACTIONS_SECOND ? LEDGER_ACTIONS_BYTES : 0);
}

/** Returns the offset, in bytes, of the deferred rules in force from the start of the control file. */
static inline uint64_t ledger_deferred_offset(uint32_t listed)
{
    return LEDGER_PAGE_BYTES + 2 * LEDGER_ACTIONS_BYTES +
           (listed & LEDGER_ACTIONS_SECOND ? sizeof(struct ledger_deferred) : 0);
}

static inline uint64_t ledger_module_key(const void *id, uint64_t bytes)
{
    return ledger_action_key(id, bytes, UINT64_MAX);
}

/** Changes *a, the action of a place that the query `q` matches, as `q` requests. */
static inline void ledger_action_change(struct ledger_action *a, const struct ledger_query *q)
{
    a->actions = (a->actions & ~q->clear) | q->action.actions;
    for (unsigned kind = 0; kind < LEDGER_ACTION_KINDS; kind++)
        if (q->action.actions >> kind & 1)
            a->until_ns[kind] = q->action.until_ns[kind];
    if (!(q->action.actions >> LEDGER_ACTION_FAIL & 1))
        return;
    a->fail = q->action.fail;
    a->n = q->action.n;
    a->serial = q->action.serial;
}

#endif
