/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper of `allium bench` with other sinks, whose times and losses are known. The clock is one that only they
 * move, so that figures are exact; or, with REAL_TIME, the machine's.
 */
#include "base/sigsafe/clock_ns.h"
#include "bench/hooks/bench_mechanism.h"

static uint64_t hits;

static uint64_t count_hits(void)
{
    return hits;
}

#ifdef REAL_TIME

const uint64_t bench_calls_most = UINT64_C(1) << 20;

#define PLANTED_NS 5.0
#define STEPS      10000000u
#define TRIES      10

uint64_t bench_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t steps;

/* Takes one cycle for each step, and does not overlap with other code. */
static void wait_steps(uint64_t n)
{
    __asm__ volatile("lfence\n\t"
                     "1: decq %0\n\t"
                     "jnz 1b\n\t"
                     "lfence"
                     : "+r"(n)
                     :
                     : "cc");
}

static const char *begin_steps(unsigned threads)
{
    double least_ns = 1e9;
    (void)threads;
    for (int i = 0; i < TRIES; i++) {
        const uint64_t began = bench_now();
        wait_steps(STEPS);
        const double ns = (double)(bench_now() - began) / STEPS;
        least_ns = ns < least_ns ? ns : least_ns;
    }
    steps = (uint64_t)(100 / least_ns);
    return NULL;
}

static const char *begin_more_steps(unsigned threads)
{
    begin_steps(threads);
    steps += (uint64_t)((double)steps * PLANTED_NS / 100);
    return NULL;
}

/* 100 ns, or 105 */
static void hit_steps(void *function, void *caller)
{
    (void)function;
    (void)caller;
    wait_steps(steps);
    hits++;
}

const struct bench_sink bench_sinks[] = {
    {"off", hit_steps},
    {"empty", hit_steps, begin_steps, .hits = count_hits},
    {"count-thread", hit_steps, begin_more_steps, .hits = count_hits},
    {.name = NULL},
};

#else

#define READ_NS 20u

/* For most loops this clock stands still. */
const uint64_t bench_calls_most = 4096;

static uint64_t now, lost;

static uint64_t count_lost(void)
{
    return lost;
}

static uint64_t count_bytes(void)
{
    return hits * 32;
}

uint64_t bench_now(void)
{
    return now += READ_NS;
}

static void hit_5_ns(void *function, void *caller)
{
    (void)function;
    (void)caller;
    now += 5;
    hits++;
}

/* One of 50 takes 105 ns: a mean of 7. */
static void hit_with_tail(void *function, void *caller)
{
    if (hits % 50 == 49)
        now += 100;
    hit_5_ns(function, caller);
}

/* One of 1,000 is not recorded, and nobody knows. */
static void hit_with_holes(void *function, void *caller)
{
    static uint64_t n;
    hit_5_ns(function, caller);
    hits -= ++n % 1000 == 0;
}

/* One of 100 is lost, and counted. */
static void hit_with_losses(void *function, void *caller)
{
    static uint64_t n;
    const bool is_lost = ++n % 100 == 0;
    hit_5_ns(function, caller);
    hits -= is_lost;
    lost += is_lost;
}

static const char *refuse(unsigned threads)
{
    (void)threads;
    return "planted reason: planted way out";
}

const struct bench_sink bench_sinks[] = {
    {"off", hit_5_ns},
    {"empty", hit_5_ns, .hits = count_hits},
    {"event", hit_with_tail, .hits = count_hits, .bytes = count_bytes, .warm_hits = 1000},
    {"count-thread", hit_with_holes, .hits = count_hits, .lost = count_lost},
    {"count-shared", hit_with_losses, .hits = count_hits, .lost = count_lost},
    {"fprintf", hit_5_ns, refuse},
    {.name = NULL},
};

#endif
