/* SPDX-License-Identifier: BSD-2-Clause */
/* Sinks that record nothing, or a number. */
#include "bench/hooks/bench_events.h"
#include "bench/hooks/lttng/bench_lttng.h"
#include "bench/hooks/bench_marker.h"
#include "bench/hooks/bench_memory.h"
#include "bench/hooks/bench_reader.h"
#include "bench/hooks/bench_sum.h"
#include "bench/hooks/uftrace/bench_uftrace.h"

static void hit_nothing(void *function, void *caller)
{
    (void)function;
    (void)caller;
}

/* ---- counts ---- */

static uint64_t sum; /* of the threads that have left */
static __thread uint64_t thread_count __attribute__((tls_model("initial-exec")));
static uint64_t shared_count;

static void count_thread(void *function, void *caller)
{
    (void)function;
    (void)caller;
    store_relaxed(&thread_count, thread_count + 1);
}

static void leave_thread(void)
{
    atomic_add64_known(false, &sum, thread_count);
    thread_count = 0;
}

static uint64_t thread_hits(void)
{
    return load_relaxed(&sum);
}

static void count_shared(void *function, void *caller)
{
    (void)function;
    (void)caller;
    atomic_add64_known(false, &shared_count, 1);
}

static uint64_t shared_hits(void)
{
    return load_relaxed(&shared_count);
}

#define RING                                                                                                 \
    .hits = bench_events_hits, .lost = bench_events_lost, .bytes = bench_events_bytes,                       \
    .warm_hits = BENCH_RING_EVENTS
const struct bench_sink bench_sinks[] = {
    {"off", hit_nothing},
    {"empty", hit_nothing},
    {"count-thread", count_thread, .leave = leave_thread, .hits = thread_hits},
    {"count-cpu", bench_cpu_hit, bench_cpu_begin, .hits = bench_cpu_hits},
    {"count-shared", count_shared, .hits = shared_hits},
    {"sum", bench_sum_hit, bench_sum_begin, .hits = bench_sum_hits},
    {"event", bench_events_hit, bench_events_begin, RING},
    {"event-untimed", bench_events_hit_untimed, bench_events_begin_untimed, RING},
    {"event-full", bench_events_hit, bench_events_begin_full, RING},
    {"event-read", bench_events_hit, bench_events_begin_read, .settle = bench_events_settle,
     .hits = bench_reader_events, .lost = bench_events_lost, .bytes = bench_events_bytes,
     .warm_hits = BENCH_RING_EVENTS},
    {"event-clock", bench_events_hit, bench_events_begin_mono, RING},
    {"event-site", bench_events_hit_site, bench_events_begin, RING},
    {"event-frames", bench_events_hit_frames, bench_events_begin, RING},
    {"lttng", bench_lttng_hit_event, bench_lttng_begin, .settle = bench_lttng_settle,
     .hits = bench_lttng_hits, .lost = bench_lttng_lost, .bytes = bench_lttng_bytes,
     .memory = bench_memory_beside, .set = bench_lttng_set, .warm_hits = BENCH_LTTNG_WARM_EVENTS},
    {"uftrace", hit_nothing, bench_uftrace_begin, .settle = bench_uftrace_settle, .hits = bench_uftrace_hits,
     .lost = bench_uftrace_lost, .bytes = bench_uftrace_bytes, .memory = bench_memory_beside},
    {"trace-marker", bench_marker_hit, bench_marker_begin, .settle = bench_marker_settle,
     .hits = bench_marker_hits, .lost = bench_marker_lost, .bytes = bench_marker_bytes,
     .memory = bench_marker_memory, .warm_hits = BENCH_MARKER_WARM},
    {"event-payload", bench_events_hit_payload, bench_events_begin, RING},
    {"fprintf", bench_file_hit, .leave = bench_file_leave, .hits = bench_file_hits,
     .bytes = bench_file_bytes},
    {"fprintf-shared", bench_shared_file_hit, bench_shared_file_begin, .leave = bench_shared_file_leave,
     .hits = bench_file_hits, .bytes = bench_file_bytes},
    {.name = NULL},
};
