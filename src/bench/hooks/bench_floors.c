/* SPDX-License-Identifier: BSD-2-Clause */
/* Floors: what no mechanism can go below. Their time is that of the whole loop. */
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "base/sigsafe/syscall.h"
#include "bench/hooks/bench_mechanism.h"

#define FLOOR(name, text, ...)                                                                               \
    BENCH_LOOP(loop_##name, __VA_ARGS__)                                                                     \
    BENCH_MECHANISM(floor_##name) = {text, NULL, loop_##name, NULL, 0, NULL}

FLOOR(loop, "loop", BENCH_WORK(i));

static BENCH_CODE uint64_t work(uint64_t x)
{
    BENCH_WORK(x);
    return x;
}
FLOOR(call, "call", work(i));
FLOOR(rdtsc, "rdtsc", uint64_t t = __builtin_ia32_rdtsc(); BENCH_WORK(t));
FLOOR(clock, "clock", uint64_t t = clock_ns(CLOCK_MONOTONIC); BENCH_WORK(t));
FLOOR(syscall, "syscall", sys_call(SYS_getppid, 0));
/* From one value of the clock to the next. */
FLOOR(step, "step", for (uint64_t t = clock_ns(CLOCK_MONOTONIC); clock_ns(CLOCK_MONOTONIC) == t;){});

/* ---- a line of the cache that goes from one CPU to another and back ---- */

#define SPINS 1000u

static uint64_t ball __attribute__((aligned(64))); /* odd: it is the second thread's turn */
static uint32_t players __attribute__((aligned(64)));
static __thread uint32_t player; /* 0: not known yet; 1 or 2 */

static void wait_for_ball(void)
{
    for (uint32_t spins = 0; (load_acquire(&ball) & 1) != player - 1; spins++) {
        if (spins % SPINS == SPINS - 1)
            sched_yield(); /* the other thread may have no CPU */
        __builtin_ia32_pause();
    }
}

static BENCH_CODE void loop_ping_pong(uint64_t calls)
{
    if (!player) {
        atomic_add32(&players, 1);
        player = load_relaxed(&players) == 1 ? 1 : 2;
    }
    for (uint64_t i = 0; i < calls; i++) {
        wait_for_ball();
        store_release(&ball, ball + 1);
    }
}
BENCH_MECHANISM(floor_ping_pong) = {"ping-pong", NULL, loop_ping_pong, NULL, 0, NULL};
