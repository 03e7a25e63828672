/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_DEFERRED_RULES_H
#define WIRE_DEFERRED_RULES_H

/*
 * Queries that are kept in the control file of tags, for modules that are loaded later: nobody is there then who could
 * find their places, but the process itself, which knows less of them (base/sigsafe/clause.h).
 *
 * Modules whose places are in the list of actions, as far as anything is asked of them, are settled. Of a place in
 * another one that is asked what the queries say that fit it, one after the other.
 *
 * Runs in: the tool (writer) and target (reader).
 */

#include <stddef.h>

#include "wire/ledger.h"

#define LEDGER_QUERIES_MOST 32u
#define LEDGER_QUERY_TEXT   928u
#define LEDGER_QUERY_CLAUSE 1040u
struct ledger_query {
    struct ledger_action action; /* its key is of no meaning */
    uint32_t clear;              /* 1 << enum ledger_ask: asked no more, before what `action` asks is */
    uint32_t clause_bytes;
    uint64_t pad;
    char text[LEDGER_QUERY_TEXT]; /* for people, and for who knows more; ends with a NUL */
    uint8_t clause[LEDGER_QUERY_CLAUSE];
};

/* Such a part lies behind the lists for each of the two, backed as far as there are queries. */
#define LEDGER_SETTLED_MOST 511u
struct ledger_kept {
    uint64_t n_settled;
    uint64_t settled[LEDGER_SETTLED_MOST]; /* ledger_module_key() */
    struct ledger_query queries[LEDGER_QUERIES_MOST];
};
#define LEDGER_KEPT_BYTES(n)                                                                                 \
    ((n) ? offsetof(struct ledger_kept, queries) + (n) * sizeof(struct ledger_query) : 0)

#define LEDGER_CONTROL_TAG_BYTES                                                                             \
    (LEDGER_PAGE_BYTES + 2 * LEDGER_ACTIONS_BYTES + 2 * sizeof(struct ledger_kept)) /* of the file */

_Static_assert(sizeof(struct ledger_query) == 2048 && sizeof(struct ledger_kept) % LEDGER_PAGE_BYTES == 0,
               "parts begin on pages");

/* Of the control page's `listed`, which is one word so that it is never half new. */
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

/** Where they lie in the file. */
static inline uint64_t ledger_list_offset(uint32_t listed)
{
    return LEDGER_PAGE_BYTES + (listed & LEDGER_ACTIONS_SECOND ? LEDGER_ACTIONS_BYTES : 0);
}

static inline uint64_t ledger_kept_offset(uint32_t listed)
{
    return LEDGER_PAGE_BYTES + 2 * LEDGER_ACTIONS_BYTES +
           (listed & LEDGER_ACTIONS_SECOND ? sizeof(struct ledger_kept) : 0);
}

static inline uint64_t ledger_module_key(const void *id, uint64_t bytes)
{
    return ledger_action_key(id, bytes, UINT64_MAX);
}

/** What is asked of a place that the query fits. */
static inline void ledger_action_change(struct ledger_action *a, const struct ledger_query *q)
{
    a->asked = (a->asked & ~q->clear) | q->action.asked;
    for (unsigned ask = 0; ask < LEDGER_ASKS; ask++)
        if (q->action.asked >> ask & 1)
            a->until_ns[ask] = q->action.until_ns[ask];
    if (!(q->action.asked >> LEDGER_ASK_FAIL & 1))
        return;
    a->fail = q->action.fail;
    a->n = q->action.n;
    a->serial = q->action.serial;
}

#endif
