/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_OPENMETRICS_H
#define VIEW_OPENMETRICS_H

/*
 * Accounts as OpenMetrics 1.0: for each family the places with the largest values, and the sum of all others.
 *
 * Source: https://github.com/OpenObservability/OpenMetrics/blob/main/specification/OpenMetrics.md, 1.0.0
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 * Invariant: while the counters of all places only grow, no counter sample is less than in an earlier text
 * with the same `top`, including "other", although nothing is remembered between texts. Reason: each family
 * lists the places with the largest values of this family. The rest is a sum of order statistics: the (N+1)th
 * largest, the (N+2)th ... of growing numbers. Each order statistic only grows, whichever place has that
 * rank. A place that is overtaken is no longer listed, and returns, if ever, with a larger value.
 */

#include <stdint.h>

#include "model/accounts/accounts.h"
#include "view/text/sink.h"

struct openmetrics_options {
    const char *prefix; /* "allium_tags" */
    uint32_t top;       /* places listed in each family; 0: all */
    bool usable;        /* write the counters of usable bytes, and of objects freed by the site */
};

/** Appends the whole text, of the rows at ACCOUNT_AFTER; `a` has the losses. */
void openmetrics_write(struct sink *out, const struct account_rows *rows, const struct alloc_texts *texts,
                       const struct accounts *a, const struct openmetrics_options *o);

#endif
