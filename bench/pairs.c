/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a malloc+free pair costs with the agent, as a ratio to the bare allocator. Runs under LD_PRELOAD of the agent and
 * takes turns, in short blocks within one process, between three ways to the same glibc:
 *
 *   bare     __libc_malloc through a pointer (what the program's call costs without anybody in between)
 *   floor    a shim that only forwards, reached as an interposed function is
 *   agent    malloc as the program sees it
 *
 *     pairs LIVE_SAMPLES THREADS      LIVE_SAMPLES objects are sampled and live meanwhile
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "stats.h"

typedef void *(*malloc_fn)(size_t);
typedef void (*free_fn)(void *);

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);

#define ROUNDS   301
#define BLOCK_NS 200000.0

struct way {
    const char *name;
    malloc_fn alloc;
    free_fn release;
    double ns[ROUNDS];
};

static volatile int stop;

static double most_allowed(size_t size)
{
    return size <= 4096 ? 1.10 : size == 65536 ? 1.8 : 6;
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

static int measure(struct way *ways, size_t size, int threads)
{
    pthread_t other;
    stop = 0;
    if (threads > 1)
        pthread_create(&other, NULL, other_thread, &size);
    unsigned n = (unsigned)(BLOCK_NS / time_block(&ways[0], size, 2000)) + 1;
    for (int r = 0; r < ROUNDS; r++)
        for (int w = 0; w < 3; w++)
            ways[(w + r) % 3].ns[r] = time_block(&ways[(w + r) % 3], size, n);
    stop = 1;
    if (threads > 1)
        pthread_join(other, NULL);
    struct stats_ratio floor = stats_ratio(ways[1].ns, ways[0].ns, ROUNDS);
    struct stats_ratio agent = stats_ratio(ways[2].ns, ways[0].ns, ROUNDS);
    int reached = agent.ratio <= most_allowed(size);
    printf("  %8zu B  bare %6.2f ns   floor %5.3f (%5.3f-%5.3f)   agent %6.3f (%6.3f-%6.3f)   at most %4.2f  "
           "%s\n",
           size, stats_median(ways[0].ns, ROUNDS), floor.ratio, floor.low, floor.high, agent.ratio, agent.low,
           agent.high, most_allowed(size), reached ? "reached" : "MISSED");
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
    struct way ways[3] = {{.name = "bare", .alloc = __libc_malloc, .release = __libc_free},
                          {.name = "floor", .alloc = forward_malloc, .release = forward_free},
                          {.name = "agent", .alloc = malloc, .release = free}};
    make_live(live);
    printf("%u live samples asked for, %d thread%s\n", live, threads, threads > 1 ? "s" : "");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        reached &= measure(ways, sizes[i], threads);
    return !reached;
}
