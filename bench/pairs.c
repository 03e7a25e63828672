/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a malloc+free pair costs with the agent, as a ratio to the bare allocator. Runs under LD_PRELOAD of the agent
 * and takes turns, in short blocks within one process, between three ways to the same glibc:
 *
 *   bare     __libc_malloc through a pointer (what the program's call costs without anybody in between)
 *   floor    a shim that only forwards, reached as an interposed function is
 *   agent    malloc as the program sees it
 *
 *     pairs LIVE_SAMPLES THREADS SHIM      LIVE_SAMPLES objects are sampled and live meanwhile
 *
 * Until the interval's half is a third of what the bound leaves, or a share of ten minutes (ALLIUM_BENCH_SECONDS) is
 * over. With ALLIUM_PERIOD=32M, the published setting of Poireau, only pairs of 1 MiB are of interest.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

typedef void *(*malloc_fn)(size_t);
typedef void (*free_fn)(void *);

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);

#define ROUNDS_LEAST 301
#define ROUNDS_MOST  6001
#define BLOCK_NS     200000.0

struct way {
    const char *name;
    malloc_fn alloc;
    free_fn release;
    double ns[ROUNDS_MOST];
};

static volatile int stop;

static double most_allowed(size_t size, bool published)
{
    return published ? 1.35 : size <= 4096 ? 1.10 : size == 65536 ? 1.8 : 6;
}

static __attribute__((noinline)) void pairs(malloc_fn alloc, free_fn release, size_t size, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        void *p = alloc(size);
        __asm__ volatile("" ::"r"(p) : "memory");
        release(p);
    }
}

static void *other_thread(void *arg)
{
    while (!stop)
        pairs(malloc, free, *(size_t *)arg, 1000);
    return NULL;
}

static double time_block(const struct way *w, size_t size, unsigned n)
{
    double began = stats_now_ns();
    pairs(w->alloc, w->release, size, n);
    return (stats_now_ns() - began) / n;
}

static int measure(struct way *ways, size_t size, int threads, double most, double seconds)
{
    pthread_t other;
    stop = 0;
    if (threads > 1)
        pthread_create(&other, NULL, other_thread, &size);
    unsigned n = (unsigned)(BLOCK_NS / time_block(&ways[0], size, 2000)) + 1;
    struct stats_ratio agent = {0};
    double end = stats_now_ns() + seconds * 1e9;
    int rounds = 0;
    for (int until = ROUNDS_LEAST; until <= ROUNDS_MOST; until = until * 3 / 2) {
        for (; rounds < until; rounds++)
            for (int w = 0; w < 3; w++)
                ways[(w + rounds) % 3].ns[rounds] = time_block(&ways[(w + rounds) % 3], size, n);
        agent = stats_ratio(ways[2].ns, ways[0].ns, (size_t)rounds);
        if ((agent.high - agent.low) / 2 <= (most - 1) / 3 || stats_now_ns() > end)
            break;
    }
    stop = 1;
    if (threads > 1)
        pthread_join(other, NULL);
    struct stats_ratio floor = stats_ratio(ways[1].ns, ways[0].ns, (size_t)rounds);
    int reached = agent.ratio <= most;
    printf("  %8zu B  bare %6.2f ns   floor %5.3f (%5.3f-%5.3f)   agent %6.3f (%6.3f-%6.3f)   at most %4.2f  "
           "%s\n",
           size, stats_median(ways[0].ns, (size_t)rounds), floor.ratio, floor.low, floor.high, agent.ratio,
           agent.low, agent.high, most, reached ? "reached" : "MISSED");
    return reached;
}

/* Live samples as a large program has them: one in half a mebibyte of address space, their memory untouched. */
static void make_live(unsigned samples)
{
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_TOP_PAD, 64 << 20);
    for (unsigned i = 0; i < samples; i++) {
        volatile char *p = malloc(600 << 10);
        (void)p;
    }
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {16, 100, 4096, 65536, 1 << 20};
    unsigned live = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    int threads = argc > 2 ? atoi(argv[2]) : 1, reached = 1;
    void *shim = argc > 3 ? dlopen(argv[3], RTLD_NOW | RTLD_LOCAL) : NULL;
    malloc_fn forward_malloc = shim ? (malloc_fn)dlsym(shim, "malloc") : __libc_malloc;
    free_fn forward_free = shim ? (free_fn)dlsym(shim, "free") : __libc_free;
    static struct way ways[3];
    const char *period = getenv("ALLIUM_PERIOD"), *limit = getenv("ALLIUM_BENCH_SECONDS");
    bool published = period && !strcmp(period, "32M");
    size_t first = published ? 4 : 0;
    double seconds = (limit ? atof(limit) : 600) / (double)(5 - first);
    const struct way all[3] = {{.name = "bare", .alloc = __libc_malloc, .release = __libc_free},
                               {.name = "floor", .alloc = forward_malloc, .release = forward_free},
                               {.name = "agent", .alloc = malloc, .release = free}};
    make_live(live);
    printf("%u live samples asked for, %d thread%s\n", live, threads, threads > 1 ? "s" : "");
    memcpy(ways, all, sizeof(all));
    for (size_t i = first; i < sizeof(sizes) / sizeof(*sizes); i++)
        reached &= measure(ways, sizes[i], threads, most_allowed(sizes[i], published), seconds);
    return !reached;
}
