/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer of bench/trace_event.c: an event of LTTng-UST with two words. LTTng's macros read this file repeatedly. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER allium_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "trace_event_lttng.h"

#if !defined(BENCH_TRACE_EVENT_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_TRACE_EVENT_LTTNG_H
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(allium_bench, event, LTTNG_UST_TP_ARGS(unsigned long, a, unsigned long, b),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned long, a, a)
                                                   lttng_ust_field_integer(unsigned long, b, b)))

#endif
#include <lttng/tracepoint-event.h>
