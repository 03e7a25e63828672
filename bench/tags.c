/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a malloc+free pair costs with <allium/malloc_hooks.h>, as a ratio to the same code without it, in turns within
 * one process: with all counters on, the ledger in a file, and off. Hot: an object is freed at once. Replaced: one of
 * 512, at random. 5,000 B: the size is too large for the object's entry in the map. Also realloc() in the same place.
 * At the end the sums are compared with how many objects there were.
 *
 *     tags THREADS [off]        ALLIUM_BENCH_SECONDS: for so long in all (20)
 *     tags 8 crowd              what a pair takes of CPU when so many threads have one tag, as a ratio to one thread
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "allium/tag.h"
#include "crowd.h"
#include "stats.h"
#include "tags_pairs.h"
#include "wire/ledger_accounts.h"

#define ROUNDS_MOST 4001

enum way { BARE, ON, OFF, WAYS };

static volatile bool stop;

static const struct {
    const char *name;
    uint64_t (*run[WAYS])(void); /* how many objects were made */
    double most[WAYS], more_ns;  /* at most: `most` times the bare time and `more_ns` */
} kinds[] = {
    {"hot, 16-256 B", {bare_hot, tagged_hot, tagged_hot}, {0, 1.25, 1.05}, 0},
    {"512 objects replaced at random", {bare_replaced, tagged_replaced, tagged_replaced}, {0, 1.12, 1.05}, 0},
    {"hot, 5,000 B", {bare_large, tagged_large, tagged_large}, {0, 1.5, 1.5}, 10},
    {"realloc in place, 236 B", {bare_resized, tagged_resized, tagged_resized}, {0, 1.5, 1.5}, 10}};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static void *other_thread(void *arg)
{
    while (!stop)
        kinds[1].run[*(enum way *)arg]();
    return NULL;
}

/* What this thread's words say of all places: each object was counted, and nothing is left. */
static bool adds_up(uint64_t left)
{
    const struct ledger_words *w = (const struct ledger_words *)(const void *)allium_thread.counters;
    uint64_t calls = 0, bytes = 0;
    for (unsigned i = 0; w && i < LEDGER_ACCOUNTS_TOGETHER; i++) {
        calls += ledger_count_calls(w[i].allocated);
        left -= ledger_count_calls(w[i].released);
        bytes += ledger_count_bytes(w[i].allocated) - ledger_count_bytes(w[i].released);
    }
    return !left && !bytes && calls;
}

static int measure(unsigned k, enum way way, double seconds, uint64_t *allocated)
{
    static double ns[WAYS][ROUNDS_MOST];
    size_t rounds = 0;
    for (double began = stats_now_ns(); rounds < ROUNDS_MOST && stats_now_ns() - began < seconds * 1e9;
         rounds++)
        for (int turn = 0; turn < 2; turn++) {
            enum way now = turn ? way : BARE;
            double start = stats_now_ns();
            uint64_t objects = kinds[k].run[now]();
            ns[now][rounds] = (stats_now_ns() - start) / PAIRS;
            *allocated += now == BARE ? 0 : objects;
        }
    struct stats_ratio r = stats_ratio(ns[way], ns[BARE], rounds);
    double bare = stats_median(ns[BARE], rounds), most = kinds[k].most[way] + kinds[k].more_ns / bare;
    bool good = r.ratio <= most;
    printf("  %s: bare %.2f ns, with a tag that is %s %5.3f (%5.3f-%5.3f) of it, at most %4.2f  %s\n",
           kinds[k].name, bare, way == ON ? "on" : "off", r.ratio, r.low, r.high, most,
           good ? "reached" : "MISSED");
    return good;
}

static void crowd_run(void)
{
    tagged_hot();
}

int main(int argc, char **argv)
{
    const char *limit = getenv("ALLIUM_BENCH_SECONDS");
    double all_seconds = limit ? atof(limit) : 20, seconds = all_seconds / KINDS;
    if (argc > 2 && !strcmp(argv[2], "crowd"))
        return crowd_measure(&(struct crowd){crowd_run, PAIRS}, "one tag", argv[1], all_seconds / 2);
    enum way way = argc > 2 ? OFF : ON;
    if (way == OFF && !getenv("ALLIUM_TAGS") && !setenv("ALLIUM_TAGS", "off", 1))
        execv("/proc/self/exe", argv); /* they are off from the beginning */
    bool second = argc > 1 && atoi(argv[1]) > 1;
    int reached = 1;
    uint64_t allocated = 0;
    pthread_t other;
    if (second && pthread_create(&other, NULL, other_thread, &way))
        return 2;
    printf("%d thread%s\n", second ? 2 : 1, second ? "s" : "");
    for (unsigned k = 0; k < KINDS; k++)
        reached &= measure(k, way, seconds, &allocated);
    if (way == ON && !adds_up(allocated)) {
        printf("  the sums do not add up\n");
        reached = 0;
    }
    stop = true;
    if (second)
        pthread_join(other, NULL);
    return !reached;
}
