/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What exact accounts of call sites cost, as a ratio to the bare allocator: runs with LD_PRELOAD of the agent and
 * ALLIUM_SITES=1, and takes turns within one process between three ways to the same glibc, through the same call
 * instructions:
 *
 *   bare     __libc_malloc and so on, which nobody stands before
 *   floor    a shim that only forwards
 *   sites    malloc as the program sees it
 *
 *     sites SHIM          pairs of malloc and free, hot and of 512 objects replaced at random; then, without a bound,
 *                         of calloc and free, realloc() in the same place, realloc() that moves, and a pair by way of a
 *                         wrapper
 *     sites SHIM 8        CPU for each pair when so many threads have one site, as a ratio to one thread's
 *
 * ALLIUM_BENCH_SECONDS: for so long in all (60).
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "stats.h"

#define OBJECTS     512
#define PAIRS       5000u
#define ROUNDS_MOST 20001
#define APART       __attribute__((noinline, noclone))

struct family {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
};

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

enum way { BARE, FLOOR, SITES, WAYS };
static struct family families[WAYS] = {{__libc_malloc, __libc_free, __libc_calloc, __libc_realloc},
                                       {NULL, NULL, NULL, NULL},
                                       {malloc, free, calloc, realloc}};

/* The compiler knows nothing of it from here on. */
#define HIDE(p) __asm__ volatile("" : "+r"(p) : : "memory")

static APART void hot(const struct family *f)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        void *p = f->malloc(16 + i % 16 * 16);
        HIDE(p);
        f->free(p);
    }
}

static APART void replaced(const struct family *f)
{
    void *objects[OBJECTS];
    uint64_t r = 88172645463325252u;
    for (unsigned i = 0; i < OBJECTS; i++)
        objects[i] = f->malloc(16 + i % 241);
    for (unsigned i = 0; i < PAIRS; i++) {
        r ^= r << 13;
        r ^= r >> 7;
        r ^= r << 17;
        f->free(objects[r >> 55]);
        objects[r >> 55] = f->malloc(16 + (r >> 20) % 241);
    }
    for (unsigned i = 0; i < OBJECTS; i++)
        f->free(objects[i]);
}

static APART void zeroed(const struct family *f)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        void *p = f->calloc(1, 16 + i % 16 * 16);
        HIDE(p);
        f->free(p);
    }
}

static APART void resized(const struct family *f)
{
    void *p = f->malloc(240);
    for (unsigned i = 0; i < PAIRS; i++) {
        p = f->realloc(p, 236 + i % 2);
        HIDE(p);
    }
    f->free(p);
}

static APART void moved(const struct family *f)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        void *p = f->malloc(24);
        HIDE(p);
        p = f->realloc(p, 100);
        f->free(p);
    }
}

/* Of the list of wrappers. */
static APART void *xmalloc(const struct family *f, size_t size)
{
    void *p = f->malloc(size);
    if (!p)
        abort();
    return p;
}

static APART void wrapped(const struct family *f)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        void *p = xmalloc(f, 16 + i % 16 * 16);
        HIDE(p);
        f->free(p);
    }
}

static const struct kind {
    const char *name;
    void (*run)(const struct family *);
    double most; /* 0: it has no bound */
} kinds[] = {
    {"malloc and free, hot, 16-256 B", hot, 1.75},  {"512 objects replaced at random", replaced, 1.75},
    {"calloc and free, hot, 16-256 B", zeroed, 0},  {"realloc in the same place", resized, 0},
    {"malloc, realloc that moves, free", moved, 0}, {"malloc by a wrapper, and free", wrapped, 0}};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static bool measure(const struct kind *k, double seconds)
{
    static double ns[WAYS][ROUNDS_MOST];
    size_t rounds = 0;
    for (double began = stats_now_ns(); rounds < ROUNDS_MOST && stats_now_ns() - began < seconds * 1e9;
         rounds++)
        for (int turn = 0; turn < WAYS; turn++) {
            enum way way = (enum way)((turn + rounds) % WAYS);
            double start = stats_now_ns();
            k->run(&families[way]);
            ns[way][rounds] = (stats_now_ns() - start) / PAIRS;
        }
    struct stats_ratio r = stats_ratio(ns[SITES], ns[BARE], rounds),
                       floor = stats_ratio(ns[FLOOR], ns[BARE], rounds);
    bool good = !k->most || r.low <= k->most;
    printf("  %-34s bare %6.2f ns   floor %5.3f (%5.3f-%5.3f)   sites %5.3f (%5.3f-%5.3f)", k->name,
           stats_median(ns[BARE], rounds), floor.ratio, floor.low, floor.high, r.ratio, r.low, r.high);
    if (k->most)
        printf("   at most %4.2f   %s", k->most,
               r.high <= k->most ? "reached"
               : good            ? "undecided: the interval holds the bound"
                                 : "MISSED");
    printf("   %zu rounds\n", rounds);
    return good;
}

static void crowd_run(void)
{
    hot(&families[SITES]);
}

static bool load_floor(const char *path)
{
    void *shim = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    struct family *f = &families[FLOOR];
    *f = families[BARE];
    if (!shim)
        return false;
    f->malloc = (void *(*)(size_t))dlsym(shim, "malloc");
    f->free = (void (*)(void *))dlsym(shim, "free");
    f->calloc = (void *(*)(size_t, size_t))dlsym(shim, "calloc");
    f->realloc = (void *(*)(void *, size_t))dlsym(shim, "realloc");
    return f->malloc && f->free && f->calloc && f->realloc;
}

int main(int argc, char **argv)
{
    const char *limit = getenv("ALLIUM_BENCH_SECONDS");
    double seconds = limit ? atof(limit) : 60;
    bool reached = true;
    if (!load_floor(argc > 1 ? argv[1] : NULL))
        return 2;
    if (argc > 2)
        return crowd_measure(&(struct crowd){crowd_run, PAIRS}, "one site", argv[2], seconds);
    for (size_t i = 0; i < KINDS; i++)
        reached &= measure(&kinds[i], seconds * (kinds[i].most ? 2 : 1) / (KINDS + 2));
    return !reached;
}
