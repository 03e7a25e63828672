/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signal handlers that allocate, free and realloc, wherever they strike: in the agent, in the allocator
 * (signal_alloc.c, which bears it), in both. Main code and handlers free each other's blocks.
 *
 *     signals COUNT THREADS
 *
 * Ends when there were COUNT signals, in all threads. Says what was done beyond what a run of 0 does.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 512

static _Atomic(void *) slots[SLOTS];
static _Atomic uint64_t allocated, bytes, freed, signals, missing;
static uint64_t wanted;

static void step(uint64_t random)
{
    size_t size = 1 + (random >> 33) % 200;
    void *p = malloc(size);
    missing += !p;
    allocated++;
    bytes += size;
    if (random >> 60 == 0) {
        p = realloc(p, 2 * size);
        allocated++;
        bytes += 2 * size;
        freed++;
    }
    void *old = atomic_exchange(&slots[random % SLOTS], p);
    if (old) {
        free(old);
        freed++;
    }
}

static void strike(int sig)
{
    (void)sig;
    static _Atomic uint64_t random = 88172645463325252u;
    uint64_t r = atomic_fetch_add(&random, 0x9e3779b97f4a7c15u);
    signals++;
    for (int i = 0; i < 3; i++)
        step((r + (uint64_t)i) * 6364136223846793005u >> 3);
}

/* SIGPROF to this thread, 1,000 times a second, if it runs. ITIMER_PROF gives no more than the kernel has ticks, and
 * to any thread. */
static timer_t strike_me(void)
{
    struct sigevent event = {
        .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF, ._sigev_un._tid = gettid()};
    struct itimerspec each = {.it_interval = {.tv_nsec = 1000000}, .it_value = {.tv_nsec = 1000000}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer))
        exit(1);
    if (wanted)
        timer_settime(timer, 0, &each, NULL);
    return timer;
}

static void *work(void *arg)
{
    uint64_t random = (uint64_t)(long)arg + 1;
    timer_t timer = strike_me();
    while (signals < wanted)
        for (int i = 0; i < 1000; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            step(random >> 5);
        }
    timer_delete(timer);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    int n = argc > 2 ? atoi(argv[2]) : 1;
    wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    struct sigaction act = {.sa_handler = strike, .sa_flags = SA_RESTART | SA_NODEFER};
    sigaction(SIGPROF, &act, NULL);
    for (long i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    uint64_t live = 0;
    for (int i = 0; i < SLOTS; i++)
        live += slots[i] != NULL;
    printf("allocated %lu\nbytes %lu\nfreed %lu\nsignals %lu\nlive %lu\nmissing %lu\n",
           (unsigned long)allocated, (unsigned long)bytes, (unsigned long)freed, (unsigned long)signals,
           (unsigned long)live, (unsigned long)missing);
    return 0;
}
