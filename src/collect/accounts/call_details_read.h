/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CALL_DETAILS_READ_H
#define COLLECT_CALL_DETAILS_READ_H

/*
 * Details of single calls of tags or call sites, recorded while a rule of `allium set` was in force: their
 * stacks, and their times.
 *
 * Runs in: the tool. Nothing in the ledger is trusted. Owns: all, until tags_details_release().
 */

#include "collect/accounts/tag_accounts.h"
#include "model/profile/wrappers.h"
#include "wire/ledger.h"

/** The calls of one place from one stack. */
struct tags_call {
    struct account_key place;
    uint64_t calls, bytes;
    char *stack; /* one function a line, the innermost first; each line ends with \n */
};

/** The times of the calls of one place; its copies are added up. */
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
    uint64_t cut;     /* stacks that are deeper than the limit */
    uint64_t damaged; /* inconsistent records */
};

/**
 * Reads the details of a process, or of its left-over ledger, with names; only places that match the query,
 * if there is one. Returns 0, or -errno with a line, as tags_read().
 */
int tags_details_read(struct tags_details *d, struct alloc_texts *texts, pid_t pid, const struct query *where,
                      struct symbols *symbols, struct error *e);
/** Like tags_details_read(), for its call sites, which have no times. */
int sites_details_read(struct tags_details *d, struct alloc_texts *texts, pid_t pid,
                       const struct query *where, struct symbols *symbols, const struct wrappers *wrappers,
                       struct error *e);
void tags_details_release(struct tags_details *d);
/** Returns the time within which the share `of` (0 to 1) of the calls was done; up to an eighth too much. */
uint64_t tags_latency_quantile(const struct tags_latency *l, double of);

#endif
