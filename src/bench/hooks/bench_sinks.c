/* SPDX-License-Identifier: BSD-2-Clause */
/* Sinks that record nothing, or a number. */
#include "bench/hooks/bench_mechanism.h"

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

const struct bench_sink bench_sinks[] = {
    {"off", hit_nothing, NULL, NULL, NULL, NULL, NULL},
    {"empty", hit_nothing, NULL, NULL, NULL, NULL, NULL},
    {"count-thread", count_thread, NULL, leave_thread, thread_hits, NULL, NULL},
    {"count-shared", count_shared, NULL, NULL, shared_hits, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};
