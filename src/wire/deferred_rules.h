/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_DEFERRED_RULES_H
#define WIRE_DEFERRED_RULES_H

/*
 * Rules for modules that are loaded later. The control file of tags stores the query of each rule. When a module is
 * loaded, the process itself finds the places that match, because no tool may be running then. The process knows less
 * about a place than the tool does (base/sigsafe/clause.h).
 *
 * The tool has already applied all rules to the modules in `resolved`, and has written the results to the list of
 * actions. For a place in any other module, the process applies each query that matches, one after the other.
 *
 * Runs in: the tool (writer) and target (reader).
 */

#include <stddef.h>

#include "wire/ledger.h"

#define LEDGER_QUERIES_MOST 32u
#define LEDGER_QUERY_TEXT   928u
#define LEDGER_QUERY_CLAUSE 1040u
struct ledger_query {
    struct ledger_action action; /* its key is not used */
    /* bits 1 << enum ledger_action_kind: actions to cancel before `action` is applied */
    uint32_t clear;
    uint32_t clause_bytes;
    uint64_t pad;
    char text[LEDGER_QUERY_TEXT]; /* the query as text, for people and for the tool; NUL-terminated */
    uint8_t clause[LEDGER_QUERY_CLAUSE];
};

/*
 * The control file has two of these after the two lists of actions, one for each list. Memory is allocated for each up
 * to its last query.
 */
#define LEDGER_RESOLVED_MOST 511u
struct ledger_deferred {
    uint64_t n_resolved;
    /* ledger_module_key() of each module whose places the tool has looked up */
    uint64_t resolved[LEDGER_RESOLVED_MOST];
    struct ledger_query queries[LEDGER_QUERIES_MOST];
};
#define LEDGER_DEFERRED_BYTES(n)                                                                             \
    ((n) ? offsetof(struct ledger_deferred, queries) + (n) * sizeof(struct ledger_query) : 0)

/* size of the control file */
#define LEDGER_CONTROL_TAG_BYTES                                                                             \
    (LEDGER_PAGE_BYTES + 2 * LEDGER_ACTIONS_BYTES + 2 * sizeof(struct ledger_deferred))

_Static_assert(sizeof(struct ledger_query) == 2048 && sizeof(struct ledger_deferred) % LEDGER_PAGE_BYTES == 0,
               "parts begin on pages");

/* The two numbers in `listed` of the control page. They share one word so that a reader never sees a
 * half-written pair. */
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

/** The offset in the file of the list of actions that is in force. */
static inline uint64_t ledger_list_offset(uint32_t listed)
{
    return LEDGER_PAGE_BYTES + (listed & LEDGER_ACTIONS_SECOND ? LEDGER_ACTIONS_BYTES : 0);
}

static inline uint64_t ledger_deferred_offset(uint32_t listed)
{
    return LEDGER_PAGE_BYTES + 2 * LEDGER_ACTIONS_BYTES +
           (listed & LEDGER_ACTIONS_SECOND ? sizeof(struct ledger_deferred) : 0);
}

static inline uint64_t ledger_module_key(const void *id, uint64_t bytes)
{
    return ledger_action_key(id, bytes, UINT64_MAX);
}

/** Applies the query to the action of a place that it matches. */
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
