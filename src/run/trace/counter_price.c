/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/trace/counter_price.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "run/worker_thread.h"

#define ROUNDS  40
#define MOST_NS 10000000u
#define LONGEST 1000.0 /* ns for a number: a longer round was interrupted, and the threads ran in turns */
#define NUMBERS 200
#define WAIT_NS 2000000u /* for the other thread, which may have no CPU */

/* The counter has a line of the cache for itself, as in the rings. */
struct meeting {
    _Alignas(128) _Atomic uint64_t counter;
    _Alignas(128) atomic_bool began, stop;
};

static double round_ns(struct meeting *m)
{
    const uint64_t began = clock_ns(CLOCK_MONOTONIC);
    for (int k = 0; k < NUMBERS; k++)
        atomic_fetch_add_explicit(&m->counter, 1, memory_order_relaxed);
    return (double)(clock_ns(CLOCK_MONOTONIC) - began) / NUMBERS;
}

static void *other(void *arg)
{
    struct meeting *m = arg;
    atomic_store(&m->began, true);
    while (!atomic_load_explicit(&m->stop, memory_order_relaxed))
        atomic_fetch_add_explicit(&m->counter, 1, memory_order_relaxed);
    return NULL;
}

/* Returns the shortest of some rounds; `together`: of those in which the other thread took a quarter as many numbers at
 * least. 0: there was none. */
static double shortest_ns(struct meeting *m, bool together)
{
    const uint64_t end = clock_ns(CLOCK_MONOTONIC) + MOST_NS;
    double least = 0;
    for (int k = 0; k < ROUNDS && clock_ns(CLOCK_MONOTONIC) < end;) {
        const uint64_t before = atomic_load(&m->counter);
        const double ns = round_ns(m);
        const uint64_t taken = atomic_load(&m->counter) - before;
        if (together && (taken < NUMBERS + NUMBERS / 4 || ns > LONGEST))
            continue;
        k++;
        least = !least || ns < least ? ns : least;
    }
    return least;
}

static bool has_two_cpus(void)
{
    cpu_set_t mine;
    return !sched_getaffinity(0, sizeof(mine), &mine) && CPU_COUNT(&mine) > 1;
}

struct counter_price counter_price_measure(void)
{
    static struct meeting m;
    pthread_t thread;
    atomic_store(&m.stop, false);
    atomic_store(&m.began, false);
    struct counter_price price = {.alone_ns = shortest_ns(&m, false)};
    if (!has_two_cpus() || worker_thread_start(&thread, other, &m))
        return price;
    for (const uint64_t end = clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
         !atomic_load(&m.began) && clock_ns(CLOCK_MONOTONIC) < end;)
        sched_yield();
    if (atomic_load(&m.began))
        price.together_ns = shortest_ns(&m, true);
    atomic_store(&m.stop, true);
    pthread_join(thread, NULL);
    return price;
}
