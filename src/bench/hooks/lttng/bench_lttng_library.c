/* SPDX-License-Identifier: BSD-2-Clause */
/* A library with an event of LTTng-UST. It is loaded for the sink `lttng` alone: LTTng-UST starts threads. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench/hooks/lttng/bench_lttng_tracepoint.h"

void bench_lttng_hit(void *function, void *caller);
void bench_lttng_hit_payload(void *function, void *caller, const char *payload, unsigned bytes);
int bench_lttng_is_on(void);

void bench_lttng_hit(void *function, void *caller)
{
    lttng_ust_tracepoint(allium_bench, hit, function, caller);
}

void bench_lttng_hit_payload(void *function, void *caller, const char *payload, unsigned bytes)
{
    lttng_ust_tracepoint(allium_bench, hit_payload, function, caller, payload, bytes);
}

/* Whether LTTng records the event. */
int bench_lttng_is_on(void)
{
    return lttng_ust_tracepoint_enabled(allium_bench, hit);
}
