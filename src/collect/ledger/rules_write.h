/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_RULES_WRITE_H
#define COLLECT_RULES_WRITE_H

/*
 * What is asked of the places of a running process that has tags: the lists behind its control page (wire/ledger.h), and the queries
 * that are kept there for modules loaded later (wire/deferred_rules.h).
 *
 * Runs in: the tool. Owns: what was read is freed by asked_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "collect/ledger/ledger_dir.h"
#include "wire/deferred_rules.h"

/** First what is to `clear` goes, then `set` is asked; bits are 1 << enum ledger_ask. */
struct asked_change {
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
struct asked_places {
    struct VEC(struct rule_target) at;                        /* in any order */
    struct VEC(uint64_t) whole;                               /* modules all of whose places are there */
    bool (*fits)(void *arg, size_t place, const char *query); /* does an earlier query mean it? */
    void *arg;
};

/** The command's query, to be kept; its text is canonical. */
struct asked_query {
    const char *text;
    const void *clause;
    size_t clause_bytes;
};

/* What has become of it. */
enum asked_kept {
    ASKED_NOT_KEPT,
    ASKED_KEPT,
    ASKED_TAKEN_BACK,
    ASKED_FULL, /* there is no room for another one */
};

struct asked {
    bool off;                                         /* see asked_of_all() */
    struct asked_list VEC(struct ledger_action) list; /* by key */
    struct asked_queries VEC(struct ledger_query) queries;
};

/**
 * Of the places that are meant; and of those of modules loaded later that fit the query, if there is one (else NULL). It is
 * kept if it changes something there; what it takes back is kept no longer. It is done under a lock. 0, or -errno with a line.
 */
int asked_of_places(const struct ledger_entry *tags, const struct asked_places *places,
                    const struct asked_change *c, const struct asked_query *query, enum asked_kept *kept,
                    struct error *e);
/** Whether all places are on that are not asked otherwise; what was asked of some goes. */
int asked_of_all(const struct ledger_entry *tags, bool off, struct error *e);
/** What is in force now, what has run out left out. 0, or -errno with a line. */
int asked_read(const struct ledger_entry *tags, struct asked *a, struct error *e);
void asked_release(struct asked *a);

#endif
