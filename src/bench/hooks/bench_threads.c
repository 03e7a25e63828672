/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/hooks/bench_threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "bench/hooks/bench_events.h"

#define OVERLAP_LEAST 0.85
#define SPINS         1000u
#define FRAMES        10u

struct worker {
    struct bench_threads *all;
    uint64_t began_ns, ended_ns;
    bool is_switched;
} __attribute__((aligned(64)));

struct bench_threads {
    unsigned n;
    uint32_t lap; /* threads begin when it changes */
    uint32_t ready, done;
    void (*loop)(uint64_t);
    void (*leave)(void);
    uint64_t calls;
    struct worker workers[];
};

long bench_threads_switches(void)
{
    struct rusage use = {.ru_nivcsw = 0};
    getrusage(RUSAGE_THREAD, &use);
    return use.ru_nivcsw;
}

static void wait_until(const uint32_t *word, uint32_t value)
{
    for (uint32_t spins = 1; load_acquire(word) != value; spins++) {
        if (spins % SPINS == 0)
            sched_yield();
        __builtin_ia32_pause();
    }
}

__thread const uintptr_t *bench_stack_end;

/* So that a stack has as many frames as a sink may want to record. */
static BENCH_CODE void call_deep(unsigned depth, void (*loop)(uint64_t), uint64_t calls)
{
    if (depth)
        call_deep(depth - 1, loop, calls);
    else
        loop(calls);
    __asm__ volatile("");
}

/* Threads begin together: the last one that is ready lets all go. */
static void run_lap(struct worker *w)
{
    struct bench_threads *t = w->all;
    bench_stack_end = __builtin_frame_address(0);
    const long before = bench_threads_switches();
    atomic_add32(&t->ready, 1);
    wait_until(&t->ready, t->n);
    w->began_ns = bench_now();
    call_deep(FRAMES, t->loop, t->calls);
    w->ended_ns = bench_now();
    w->is_switched = bench_threads_switches() != before;
    if (t->leave)
        t->leave();
    atomic_add32(&t->done, 1);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    for (uint32_t lap = 1;; lap++) {
        wait_until(&w->all->lap, lap);
        run_lap(w);
    }
    return NULL;
}

struct bench_threads *bench_threads_new(unsigned n)
{
    struct bench_threads *t = aligned_alloc(64, (sizeof(*t) + 63) / 64 * 64 + n * sizeof(struct worker));
    if (!t)
        return NULL;
    *t = (struct bench_threads){.n = n};
    for (unsigned i = 0; i < n; i++)
        t->workers[i] = (struct worker){.all = t};
    for (unsigned i = 1; i < n; i++) {
        pthread_t thread;
        errno = pthread_create(&thread, NULL, work, &t->workers[i]);
        if (errno)
            return NULL;
        pthread_detach(thread);
    }
    return t;
}

struct bench_lap bench_threads_run(struct bench_threads *t, void (*loop)(uint64_t), uint64_t calls,
                                   void (*leave)(void))
{
    struct bench_lap lap = {.ns = 0};
    t->loop = loop;
    t->leave = leave;
    t->calls = calls;
    store_relaxed(&t->done, 0);
    store_relaxed(&t->ready, 0);
    store_release(&t->lap, t->lap + 1);
    run_lap(&t->workers[0]);
    wait_until(&t->done, t->n);
    uint64_t first = UINT64_MAX, last = 0, began = 0, ended = UINT64_MAX;
    for (unsigned i = 0; i < t->n; i++) {
        const struct worker *w = &t->workers[i];
        lap.ns += (double)(w->ended_ns - w->began_ns) / t->n;
        lap.is_switched |= w->is_switched;
        first = w->began_ns < first ? w->began_ns : first;
        last = w->ended_ns > last ? w->ended_ns : last;
        began = w->began_ns > began ? w->began_ns : began;
        ended = w->ended_ns < ended ? w->ended_ns : ended;
    }
    const double together = ended > began ? (double)(ended - began) : 0;
    lap.is_apart = t->n > 1 && together < OVERLAP_LEAST * (double)(last - first);
    return lap;
}
