/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/stray_search.h"

#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "collect/ledger/ledger_scan.h"

/* A busy machine, or a process that does not answer, makes us wait: that must not keep us from our other work. */
#define WAIT_SHARE       3
#define COST_SHARE_FIRST 50
#define COST_SHARE_LAST  2000
#define WAIT_LAST_NS     10000000000u

void stray_search_run(struct stray_search *s, const char *dir, struct ledger_list *list)
{
    size_t before = list->len;
    uint64_t began = clock_ns(CLOCK_MONOTONIC), worked = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    ledger_scan_strays(dir, list);
    uint64_t now = clock_ns(CLOCK_MONOTONIC), cost = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - worked;
    if (!s->share || list->len > before)
        s->share = COST_SHARE_FIRST;
    else if (s->share < COST_SHARE_LAST)
        s->share += s->share / 2;
    uint64_t wait = cost * s->share, least = (now - began) * WAIT_SHARE;
    wait = wait < WAIT_LAST_NS ? wait : WAIT_LAST_NS;
    s->next = now + (wait > least ? wait : least);
}
