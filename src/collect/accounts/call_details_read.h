/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CALL_DETAILS_READ_H
#define COLLECT_CALL_DETAILS_READ_H

/*
 * What was kept of single calls of tags, or of call sites, while `allium set` asked for it: their stacks, and how long
 * they took.
 *
 * Runs in: the tool. Nothing in the ledger is trusted. Owns: all, until tags_details_release().
 */

#include "collect/accounts/tag_accounts.h"
#include "model/profile/wrappers.h"
#include "wire/ledger.h"

/** Calls of one place from one stack. */
struct tags_call {
    struct account_key place;
    uint64_t calls, bytes;
    char *stack; /* a line for each function, the innermost first; each ends with \n */
};

/** Calls of one place, copies of it added up. */
struct tags_latency {
    struct account_key place;
    uint64_t calls, sum_ns, most_ns;
    uint64_t of[LEDGER_LATENCY_CLASSES];
};

struct tags_details {
    struct VEC(struct tags_call) calls;
    struct VEC(struct tags_latency) latencies;
    struct account_process process;
    uint64_t lost;    /* calls whose stack or time found no room */
    uint64_t cut;     /* stacks that are deeper than is kept */
    uint64_t damaged; /* records that make no sense */
};

/**
 * Those of a process, or of what it left, with names; of places for which the query holds, if there is one. 0, or
 * -errno with a line, as tags_read().
 */
int tags_details_read(struct tags_details *d, struct alloc_texts *texts, pid_t pid, const struct query *where,
                      struct symbols *symbols, struct error *e);
/** The same of its call sites, which have no times. */
int sites_details_read(struct tags_details *d, struct alloc_texts *texts, pid_t pid,
                       const struct query *where, struct symbols *symbols, const struct wrappers *wrappers,
                       struct error *e);
void tags_details_release(struct tags_details *d);
/** So many of `of` (0 to 1) took at most that long; up to an eighth too much. */
uint64_t tags_latency_quantile(const struct tags_latency *l, double of);

#endif
