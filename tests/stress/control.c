/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Four threads that allocate in step, in a function of its own for each phase, so that the books of one phase are
 * apart.
 *
 *     control
 *
 * Reads lines "PHASE BLOCKS MOST": each thread makes BLOCKS blocks of 1 to MOST bytes in phase_PHASE() and frees all
 * but its last ten. Answers "PHASE BLOCKS BYTES", of all threads.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
#define KEPT    10
#define PHASES  10

static pthread_barrier_t barrier;
static int phase;
static long blocks, most;
static _Atomic uint64_t bytes;

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

#define PHASE(n)                                                                                             \
    __attribute__((noinline)) static void *phase_##n(size_t size)                                            \
    {                                                                                                        \
        return malloc(size);                                                                                 \
    }
PHASE(0)
PHASE(1)
PHASE(2)
PHASE(3)
PHASE(4)
PHASE(5)
PHASE(6)
PHASE(7)
PHASE(8)
PHASE(9)
static void *(*const phases[PHASES])(size_t) = {phase_0, phase_1, phase_2, phase_3, phase_4,
                                                phase_5, phase_6, phase_7, phase_8, phase_9};

static void *work(void *arg)
{
    uint64_t random = (uintptr_t)arg;
    for (;;) {
        void *kept[KEPT] = {0};
        uint64_t sum = 0;
        pthread_barrier_wait(&barrier);
        for (long i = 0; i < blocks; i++) {
            size_t size = 1 + draw(&random) % (uint64_t)most;
            free(kept[i % KEPT]);
            kept[i % KEPT] = phases[phase](size);
            sum += size;
        }
        bytes += sum;
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(void)
{
    /* Large enough to be sampled: the ledger is there before four threads want it at once. */
    void *volatile large = malloc(1ul << 30);
    free(large);
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (uintptr_t i = 1; i <= THREADS; i++) {
        pthread_t id;
        if (pthread_create(&id, NULL, work, (void *)i))
            return 1;
    }
    while (scanf("%d %ld %ld", &phase, &blocks, &most) == 3 && phase >= 0 && phase < PHASES) {
        bytes = 0;
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        printf("%d %ld %lu\n", phase, blocks * THREADS, (unsigned long)bytes);
        fflush(stdout);
    }
    return 0;
}
