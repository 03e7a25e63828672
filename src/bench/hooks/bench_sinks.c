/* SPDX-License-Identifier: BSD-2-Clause */
/* Sinks that record nothing, or a number. */
#include "bench/hooks/bench_events.h"

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

#define RING bench_events_hits, bench_events_lost, bench_events_bytes, BENCH_RING_EVENTS
const struct bench_sink bench_sinks[] = {
    {"off", hit_nothing, NULL, NULL, NULL, NULL, NULL, 0},
    {"empty", hit_nothing, NULL, NULL, NULL, NULL, NULL, 0},
    {"count-thread", count_thread, NULL, leave_thread, thread_hits, NULL, NULL, 0},
    {"count-cpu", bench_cpu_hit, bench_cpu_begin, NULL, bench_cpu_hits, NULL, NULL, 0},
    {"count-shared", count_shared, NULL, NULL, shared_hits, NULL, NULL, 0},
    {"event", bench_events_hit, bench_events_begin, NULL, RING},
    {"event-untimed", bench_events_hit, bench_events_begin_untimed, NULL, RING},
    {"event-full", bench_events_hit, bench_events_begin_full, NULL, RING},
    {"event-clock", bench_events_hit, bench_events_begin_mono, NULL, RING},
    {"event-site", bench_events_hit_site, bench_events_begin, NULL, RING},
    {"event-frames", bench_events_hit_frames, bench_events_begin, NULL, RING},
    {"fprintf", bench_file_hit, NULL, bench_file_leave, bench_file_hits, NULL, bench_file_bytes, 0},
    {"fprintf-shared", bench_shared_file_hit, bench_shared_file_begin, bench_shared_file_leave,
     bench_file_hits, NULL, bench_file_bytes, 0},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0},
};
