/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_OPENMETRICS_H
#define VIEW_OPENMETRICS_H

/*
 * Accounts as OpenMetrics 1.0: of each family the places that have most of it, and what all others have together.
 *
 * Source: https://github.com/OpenObservability/OpenMetrics/blob/main/specification/OpenMetrics.md, 1.0.0
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 * Invariant: while the counters of all places only grow, no sample of a counter is less than it was in an earlier text
 * with the same `top`, that of "other" included, and though nothing is remembered from one to the next: each family
 * names the places that lead in this family. What is left is a sum of order statistics: the (N+1)th largest, the
 * (N+2)th ... of numbers that only grow. Each of them only grows, whoever holds that rank. A place that is overtaken is
 * no longer named, and comes back, if at all, with more.
 */

#include <stdint.h>

#include "model/accounts/accounts.h"
#include "view/text/sink.h"

struct openmetrics_options {
    const char *prefix; /* "allium_tags" */
    uint32_t top;       /* places of each family; 0: all */
    bool usable;        /* there are counters of usable bytes, and of what was freed here */
};

/** The whole text, of the rows' moment after; `a` tells what was lost. */
void openmetrics_write(struct sink *out, const struct account_rows *rows, const struct alloc_texts *texts,
                       const struct accounts *a, const struct openmetrics_options *o);

#endif
