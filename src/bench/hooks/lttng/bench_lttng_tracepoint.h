/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event of the sink `lttng`, in the form in which LTTng-UST wants it: its headers include this file several times.
 *
 * Runs in: the helper of `allium bench`.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER allium_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "bench/hooks/lttng/bench_lttng_tracepoint.h"

#if !defined(BENCH_LTTNG_TRACEPOINT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LTTNG_TRACEPOINT_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    allium_bench, hit, LTTNG_UST_TP_ARGS(void *, function, void *, caller),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(uintptr_t, function, (uintptr_t)function)
                            lttng_ust_field_integer_hex(uintptr_t, caller, (uintptr_t)caller)))

LTTNG_UST_TRACEPOINT_EVENT(
    allium_bench, hit_payload,
    LTTNG_UST_TP_ARGS(void *, function, void *, caller, const char *, payload, unsigned, bytes),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(uintptr_t, function, (uintptr_t)function)
                            lttng_ust_field_integer_hex(uintptr_t, caller, (uintptr_t)caller)
                                lttng_ust_field_sequence_text(char, payload, payload, uint16_t, bytes)))

#endif

#include <lttng/tracepoint-event.h>
