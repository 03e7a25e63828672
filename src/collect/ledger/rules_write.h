/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_RULES_WRITE_H
#define COLLECT_RULES_WRITE_H

/*
 * Changes and reads the rules on the places of a running process: the lists of actions behind its control
 * page (wire/control_page.h), and the queries for modules that are loaded later (wire/deferred_rules.h).
 *
 * Runs in: the tool. Owns: rules_release() frees what rules_read() returned.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "collect/ledger/ledger_dir.h"
#include "wire/deferred_rules.h"

/** A change of the actions on a place: first those in `clear` are removed, then those in `set` are added.
 * Bits: 1 << enum ledger_action_kind. */
struct rules_change {
    uint32_t clear, set;
    enum ledger_fail fail;
    uint32_t n;
    uint64_t until_ns; /* CLOCK_MONOTONIC; 0: no end */
};

/** A place that the process has now. */
struct rule_target {
    uint64_t key, module; /* ledger_action_key(), ledger_module_key() */
    bool meant;           /* the command selects it */
    /* the process cannot evaluate a query for it: its module's places come from a file that the process does
     * not find or cannot read */
    bool apart;
};
struct rules_places {
    struct VEC(struct rule_target) at; /* in any order */
    struct VEC(uint64_t) whole;        /* modules of which all places are listed */
    /* returns whether an earlier query matches the place */
    bool (*fits)(void *arg, size_t place, const char *query);
    void *arg;
};

/** The command's query, to be stored. Its text is canonical. */
struct rules_query {
    const char *text;
    const void *clause;
    size_t clause_bytes;
};

/* The result for the query. */
enum rules_stored {
    RULES_NOT_STORED,
    RULES_STORED,
    RULES_TAKEN_BACK,
    RULES_FULL, /* there is no room for another query */
};

struct rules {
    bool off;                                         /* see rules_of_all() */
    struct rules_list VEC(struct ledger_action) list; /* sorted by key */
    struct rules_queries VEC(struct ledger_query) queries;
};

/**
 * Applies the change to the selected places and, through `query` (may be NULL), to places of modules that are
 * loaded later. The query is stored only if it changes something there; earlier queries that it takes back
 * are removed. Works under a lock. Returns 0, or -errno with a line.
 */
int rules_of_places(const struct ledger_entry *tags, const struct rules_places *places,
                    const struct rules_change *c, const struct rules_query *query, enum rules_stored *stored,
                    struct error *e);
/** Sets whether all places without another rule are on or off; rules of single places about on and off are
 * removed. */
int rules_of_all(const struct ledger_entry *tags, bool off, struct error *e);
/** Reads the rules in force, without those that have expired. Returns 0, or -errno with a line. */
int rules_read(const struct ledger_entry *tags, struct rules *a, struct error *e);
void rules_release(struct rules *a);

#endif
