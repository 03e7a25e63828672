/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/accounts/accounts_growth.h"

bool account_metric_counts(int metric)
{
    return metric != ACCOUNT_METRIC_LIVE && metric != ACCOUNT_METRIC_ALLOCATED;
}

static double value_of(const struct account_sum *s, enum account_metric metric)
{
    switch (metric) {
    case ACCOUNT_METRIC_LIVE:
        return (double)account_live_bytes(s);
    case ACCOUNT_METRIC_OBJECTS:
        return (double)account_live_objects(s);
    case ACCOUNT_METRIC_ALLOCATED:
        return (double)s->of[ACCOUNT_ALLOCATED_BYTES];
    case ACCOUNT_METRIC_ALLOCATIONS:
        return (double)s->of[ACCOUNT_ALLOCATED_CALLS];
    default:
        return (double)s->of[ACCOUNT_FAILED];
    }
}

void account_growth_measure(struct account_growth *g, const struct account_row *total)
{
    g->before = value_of(&total->of[ACCOUNT_BEFORE], g->metric);
    g->change = value_of(&total->of[ACCOUNT_AFTER], g->metric) - g->before;
    g->met = g->change > g->share * g->before + g->amount;
}
