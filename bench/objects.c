/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 100,000 live objects of 16-1024 B, replaced in random order by 8 threads, each its eighth of them; the first line of
 * each is written. Prints the CPU time of the process for one replacement, in ns, when all objects are there.
 *
 *     objects REPLACEMENTS      by all threads together
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 8
#define OBJECTS (100000 / THREADS)

static pthread_barrier_t filled, started;
static uint64_t replacements;

static void *object(uint64_t draw)
{
    char *p = malloc(16 + (draw >> 40) % 1009);
    if (!p)
        abort();
    *(volatile char *)p = 1;
    return p;
}

static void *replace(void *seed)
{
    static __thread void *objects[OBJECTS];
    uint64_t draw = (uint64_t)(uintptr_t)seed;
    for (unsigned i = 0; i < OBJECTS; i++)
        objects[i] = object(draw = draw * 6364136223846793005u + 1442695040888963407u);
    pthread_barrier_wait(&filled);
    pthread_barrier_wait(&started);
    for (uint64_t n = replacements / THREADS; n; n--) {
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        void **place = &objects[(draw >> 20) % OBJECTS];
        free(*place);
        *place = object(draw);
    }
    return NULL;
}

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    if (argc != 2)
        return 2;
    replacements = strtoull(argv[1], NULL, 10);
    pthread_barrier_init(&filled, NULL, THREADS + 1);
    pthread_barrier_init(&started, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, replace, (void *)(i + 1)))
            return 1;
    pthread_barrier_wait(&filled);
    double before = cpu_ns();
    pthread_barrier_wait(&started);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%.2f\n", (cpu_ns() - before) / (double)(replacements / THREADS * THREADS));
    return 0;
}
