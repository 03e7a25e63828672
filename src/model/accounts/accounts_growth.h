/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ACCOUNTS_GROWTH_H
#define MODEL_ACCOUNTS_GROWTH_H

/*
 * How much exact accounts grew between two moments, compared with what is permitted (--fail-if).
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include "model/accounts/accounts.h"

enum account_metric {
    ACCOUNT_METRIC_LIVE,
    ACCOUNT_METRIC_OBJECTS,
    ACCOUNT_METRIC_ALLOCATED,
    ACCOUNT_METRIC_ALLOCATIONS,
    ACCOUNT_METRIC_FAILED,
};

struct account_growth {
    const char *condition; /* as it was written */
    enum account_metric metric;
    double share, amount; /* of the value before, or bytes or objects: what is permitted */
    /* the result: */
    double before, change;
    bool met; /* it grew by more */
};

/** Returns whether the metric counts objects or calls, and not bytes. */
bool account_metric_counts(int metric);
/** Sets the result for the sums of all rows that are compared. */
void account_growth_measure(struct account_growth *g, const struct account_row *total);

#endif
