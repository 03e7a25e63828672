/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a malloc+free pair costs with tags, as a ratio to the same calls without, in turns within one process: with a tag that is
 * on, its ledger in a file, and with one that is off. Hot: an object is freed at once. Replaced: one of 512, at random. Sums are
 * checked at the end of each turn.
 *
 *     tags THREADS [off]        ALLIUM_BENCH_SECONDS: for so long in all (20)
 *     tags 8 crowd              what a pair takes of CPU when so many threads have one tag, as a ratio to one thread
 *
 * Built with LAYOUT from 0 to 4 the code lies elsewhere: what is off by a few instructions depends on that.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allium/tag.h"
#include "stats.h"

#if defined(LAYOUT)
__asm__(".pushsection .text\n\t.skip 16 * " ALLIUM_STRING(LAYOUT) " + 64 * (" ALLIUM_STRING(
    LAYOUT) " & 2)\n\t.popsection");
#endif

#define OBJECTS     512
#define PAIRS       20000u
#define ROUNDS_MOST 4001

enum way { BARE, ON, OFF, WAYS };

/* The place where pairs are made, for each way; as <allium/malloc_hooks.h> has it. */
static struct allium_tag *tags[WAYS];
static volatile bool stop;

static inline __attribute__((always_inline)) void *make(enum way way, struct allium_tag *tag, size_t bytes)
{
    void *p = malloc(bytes);
    if (way != BARE && p)
        allium_born(tag, p, bytes);
    return p;
}

static inline __attribute__((always_inline)) void drop(enum way way, void *p)
{
    if (way != BARE)
        allium_gone(p);
    free(p);
}

static inline __attribute__((always_inline)) void run_hot(enum way way, struct allium_tag *tag)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        void *p = make(way, tag, 16 + i % 16 * 16);
        __asm__ volatile("" : "+r"(p) : : "memory");
        drop(way, p);
    }
}

static inline __attribute__((always_inline)) void run_replaced(enum way way, struct allium_tag *tag)
{
    void *objects[OBJECTS];
    uint64_t r = 88172645463325252u;
    for (unsigned i = 0; i < OBJECTS; i++)
        objects[i] = make(way, tag, 16 + i % 241);
    for (unsigned i = 0; i < PAIRS; i++) {
        r ^= r << 13;
        r ^= r >> 7;
        r ^= r << 17;
        drop(way, objects[r >> 55]);
        objects[r >> 55] = make(way, tag, 16 + (r >> 20) % 241);
    }
    for (unsigned i = 0; i < OBJECTS; i++)
        drop(way, objects[i]);
}

/* Each way is code of its own, with a descriptor of its own. */
#define RUN(name, way, how)                                                                                  \
    static __attribute__((noinline)) void name(void)                                                         \
    {                                                                                                        \
        struct allium_tag *tag = ALLIUM_TAG("bench", #name);                                                 \
        tags[way] = tag;                                                                                     \
        if (way == OFF)                                                                                      \
            tag->state = allium_control;                                                                     \
        how(way, tag);                                                                                       \
    }
RUN(hot_bare, BARE, run_hot)
RUN(hot_on, ON, run_hot)
RUN(hot_off, OFF, run_hot)
RUN(replaced_bare, BARE, run_replaced)
RUN(replaced_on, ON, run_replaced)
RUN(replaced_off, OFF, run_replaced)

static const struct {
    const char *name;
    void (*run[WAYS])(void);
    double most[WAYS];
} kinds[] = {{"hot, 16-256 B", {hot_bare, hot_on, hot_off}, {0, 1.25, 1.05}},
             {"512 objects replaced at random", {replaced_bare, replaced_on, replaced_off}, {0, 1.12, 1.05}}};

static void *other_thread(void *arg)
{
    while (!stop)
        kinds[1].run[*(enum way *)arg]();
    return NULL;
}

/* What is live of a tag that this thread alone has used. */
static int64_t live_of(const struct allium_tag *tag)
{
    const int64_t *w = (const int64_t *)(allium_thread.words + tag->words);
    return w[1] - w[3];
}

static int measure(unsigned k, enum way way, double seconds)
{
    static double ns[WAYS][ROUNDS_MOST];
    size_t rounds = 0;
    for (double began = stats_now_ns(); rounds < ROUNDS_MOST && stats_now_ns() - began < seconds * 1e9;
         rounds++)
        for (int turn = 0; turn < 2; turn++) {
            enum way now = turn ? way : BARE;
            double start = stats_now_ns();
            kinds[k].run[now]();
            ns[now][rounds] = (stats_now_ns() - start) / PAIRS;
        }
    struct stats_ratio r = stats_ratio(ns[way], ns[BARE], rounds);
    bool good = r.ratio <= kinds[k].most[way];
    printf("  %s: bare %.2f ns, with a tag that is %s %5.3f (%5.3f-%5.3f) of it, at most %4.2f  %s\n",
           kinds[k].name, stats_median(ns[BARE], rounds), way == ON ? "on" : "off", r.ratio, r.low, r.high,
           kinds[k].most[way], good ? "reached" : "MISSED");
    return good;
}

#define CROWD_MOST  64
#define CROWD_TURNS 20

static void *crowd_thread(void *arg)
{
    (void)arg;
    for (int i = 0; i < CROWD_TURNS; i++)
        hot_on();
    return NULL;
}

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double crowd_pair_ns(unsigned threads)
{
    pthread_t t[CROWD_MOST];
    double before = cpu_ns();
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&t[i], NULL, crowd_thread, NULL))
            exit(2);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    return (cpu_ns() - before) / ((double)threads * CROWD_TURNS * PAIRS);
}

static int measure_crowd(unsigned threads, double seconds)
{
    static double ns[2][ROUNDS_MOST];
    size_t rounds = 0;
    for (double began = stats_now_ns(); rounds < ROUNDS_MOST && stats_now_ns() - began < seconds * 1e9;
         rounds++) {
        ns[0][rounds] = crowd_pair_ns(1);
        ns[1][rounds] = crowd_pair_ns(threads);
    }
    struct stats_ratio r = stats_ratio(ns[1], ns[0], rounds);
    printf("%u threads, one tag: CPU for each pair %5.3f (%5.3f-%5.3f) of one thread's %.2f ns, at most 2.00 "
           " %s\n",
           threads, r.ratio, r.low, r.high, stats_median(ns[0], rounds), r.ratio <= 2 ? "reached" : "MISSED");
    return r.ratio > 2;
}

int main(int argc, char **argv)
{
    const char *limit = getenv("ALLIUM_BENCH_SECONDS");
    double seconds = (limit ? atof(limit) : 20) / 2;
    if (argc > 2 && !strcmp(argv[2], "crowd"))
        return measure_crowd((unsigned)atoi(argv[1]) % (CROWD_MOST + 1), seconds);
    enum way way = argc > 2 ? OFF : ON; /* in a process of its own: where a tag was ever on, frees look */
    bool second = argc > 1 && atoi(argv[1]) > 1;
    int reached = 1;
    pthread_t other;
    if (second && pthread_create(&other, NULL, other_thread, &way))
        return 2;
    printf("%d thread%s\n", second ? 2 : 1, second ? "s" : "");
    for (unsigned k = 0; k < 2; k++) {
        reached &= measure(k, way, seconds);
        if (way == ON && !second && live_of(tags[ON])) {
            printf("  the sums do not add up: %lld bytes live\n", (long long)live_of(tags[ON]));
            reached = 0;
        }
    }
    stop = true;
    if (second)
        pthread_join(other, NULL);
    return !reached;
}
