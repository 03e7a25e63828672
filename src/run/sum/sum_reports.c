/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/sum/sum_reports.h"

#include <stddef.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"

void sum_reports_begin(struct sum_reports *r)
{
    r->began_ns = r->reported_ns = clock_ns(CLOCK_MONOTONIC);
    r->due_ns = r->began_ns + r->interval_ns;
}

bool sum_reports_due(struct sum_reports *r)
{
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (!r->interval_ns || now < r->due_ns)
        return false;
    while (r->due_ns <= now)
        r->due_ns += r->interval_ns;
    return true;
}

void sum_reports_give(struct sum_reports *r, struct event_sums *sums, bool last)
{
    const uint64_t now = clock_ns(CLOCK_MONOTONIC), since = last ? r->began_ns : r->reported_ns;
    event_sums_begin_span(sums, last ? NULL : r->before, (double)(now - since) / 1e9);
    r->report(r->arg, sums, last);
    event_sums_free(r->before);
    r->before = sums;
    r->reported_ns = now;
}

void sum_reports_end(struct sum_reports *r)
{
    event_sums_free(r->before);
    r->before = NULL;
}
