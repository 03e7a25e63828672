/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_RULES_WRITE_H
#define COLLECT_RULES_WRITE_H

/*
 * What is asked of the places of a running process that has tags: the lists behind its control page (wire/ledger.h),
 * and the queries that are kept there for modules loaded later (wire/deferred_rules.h).
 *
 * Runs in: the tool. Owns: what was read is freed by rules_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "collect/ledger/ledger_dir.h"
#include "wire/deferred_rules.h"

/** First what is to `clear` goes, then `set` is asked; bits are 1 << enum ledger_ask. */
struct rules_change {
    uint32_t clear, set;
    enum ledger_fail fail;
    uint32_t n;
    uint64_t until_ns; /* CLOCK_MONOTONIC; 0: for good */
};

/** What is known of a process's places now. */
struct rule_target {
    uint64_t key, module; /* ledger_action_key(), ledger_module_key() */
    bool meant;           /* by the command */
    bool apart; /* who finds its module's places in the file does not find it, or cannot look there */
};
struct rules_places {
    struct VEC(struct rule_target) at;                        /* in any order */
    struct VEC(uint64_t) whole;                               /* modules all of whose places are there */
    bool (*fits)(void *arg, size_t place, const char *query); /* does an earlier query mean it? */
    void *arg;
};

/** The command's query, to be kept; its text is canonical. */
struct rules_query {
    const char *text;
    const void *clause;
    size_t clause_bytes;
};

/* What has become of it. */
enum rules_kept {
    RULES_NOT_KEPT,
    RULES_KEPT,
    RULES_TAKEN_BACK,
    RULES_FULL, /* there is no room for another one */
};

struct rules {
    bool off;                                         /* see rules_of_all() */
    struct rules_list VEC(struct ledger_action) list; /* by key */
    struct rules_queries VEC(struct ledger_query) queries;
};

/**
 * Of the places that are meant; and of those of modules loaded later that fit the query, if there is one (else NULL).
 * It is kept if it changes something there; what it takes back is kept no longer. It is done under a lock. 0, or -errno
 * with a line.
 */
int rules_of_places(const struct ledger_entry *tags, const struct rules_places *places,
                    const struct rules_change *c, const struct rules_query *query, enum rules_kept *kept,
                    struct error *e);
/** Whether all places are on that are not asked otherwise; what was asked of some goes. */
int rules_of_all(const struct ledger_entry *tags, bool off, struct error *e);
/** What is in force now, what has run out left out. 0, or -errno with a line. */
int rules_read(const struct ledger_entry *tags, struct rules *a, struct error *e);
void rules_release(struct rules *a);

#endif
