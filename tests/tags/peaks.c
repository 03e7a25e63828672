/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that comes and goes, and the most that was live at once, by a count of its own: what was surely live, which
 * rises after a request and falls before a free, and what may have been, which rises before and falls after. Prints
 * both.
 *
 *     peaks grow N BYTES              so many objects, then none
 *     peaks churn THREADS N SEED      random ones in so many threads, more and fewer by turns
 *     peaks huge N BYTES              N times an object that is only told of, after another thread has told of one
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allium/tag.h"

#define SLOTS 300

static atomic_long surely, maybe, surely_most, maybe_most;
static unsigned long turns, seed;

static void rise(atomic_long *now, atomic_long *most, long bytes)
{
    long is = atomic_fetch_add(now, bytes) + bytes, was = atomic_load(most);
    while (was < is && !atomic_compare_exchange_weak(most, &was, is))
        ;
}

static void *make(size_t bytes)
{
    rise(&maybe, &maybe_most, (long)bytes);
    void *p = malloc(bytes);
    rise(&surely, &surely_most, (long)bytes);
    return p;
}

static void drop(void *p, size_t bytes)
{
    atomic_fetch_sub(&surely, (long)bytes);
    free(p);
    atomic_fetch_sub(&maybe, (long)bytes);
}

static void grow(size_t n, size_t bytes)
{
    void **all = calloc(n, sizeof(*all));
    for (size_t i = 0; i < n; i++)
        all[i] = make(bytes);
    for (size_t i = 0; i < n; i++)
        drop(all[i], bytes);
    free(all);
}

__attribute__((noinline)) static void *tell(void *bytes)
{
    struct allium_tag *tag = ALLIUM_TAG("huge", "malloc");
    long n = (long)(uintptr_t)bytes;
    allium_account(tag, (size_t)n);
    rise(&maybe, &maybe_most, n);
    rise(&surely, &surely_most, n);
    atomic_fetch_sub(&surely, n);
    atomic_fetch_sub(&maybe, n);
    allium_unaccount(tag, (size_t)n);
    return NULL;
}

static uint64_t draw(uint64_t *r)
{
    *r ^= *r << 13;
    *r ^= *r >> 7;
    *r ^= *r << 17;
    return *r;
}

/* Small ones, those of a page, and now and then a large one; mostly made, then mostly freed, by turns of some
 * hundreds. */
static void *churn(void *number)
{
    uint64_t r = 88172645463325252u + seed * 7919 + (uintptr_t)number * 104729;
    struct {
        void *p;
        size_t bytes;
    } slots[SLOTS] = {{0}};
    for (int i = 0; i < 20; i++)
        draw(&r);
    for (unsigned long i = 0; i <= turns; i++) {
        unsigned at = (unsigned)(draw(&r) % SLOTS), full = i / 700 % 2 ? 5 : 2;
        if (slots[at].p) {
            drop(slots[at].p, slots[at].bytes);
            slots[at].p = NULL;
        }
        if (i < turns && draw(&r) % 6 < full) {
            uint64_t kind = draw(&r) % 200;
            slots[at].bytes = draw(&r) % (kind ? (kind < 20 ? 5000 : 200) : 300000);
            slots[at].p = make(slots[at].bytes);
        }
    }
    for (unsigned i = 0; i < SLOTS; i++)
        if (slots[i].p)
            drop(slots[i].p, slots[i].bytes);
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned long of[2] = {0}, threads = 0;
    for (int i = 0; i < 2 && argc > 3; i++)
        of[i] = strtoul(argv[2 + i], NULL, 10);
    if (argc == 4 && !strcmp(argv[1], "grow")) {
        grow(of[0], of[1]);
    } else if (argc == 4 && !strcmp(argv[1], "huge")) {
        pthread_t t;
        tell((void *)1);
        if (pthread_create(&t, NULL, tell, (void *)1) || pthread_join(t, NULL))
            return 2;
        for (unsigned long i = 0; i < of[0]; i++)
            tell((void *)of[1]);
    } else if (argc == 5 && !strcmp(argv[1], "churn") && of[0] && of[0] <= 64) {
        pthread_t t[64];
        threads = of[0];
        turns = of[1];
        seed = strtoul(argv[4], NULL, 10);
        for (unsigned long i = 0; i < threads; i++)
            if (pthread_create(&t[i], NULL, churn, (void *)i))
                return 2;
        for (unsigned long i = 0; i < threads; i++)
            pthread_join(t[i], NULL);
    } else {
        return 2;
    }
    printf("%ld %ld\n", atomic_load(&surely_most), atomic_load(&maybe_most));
    return 0;
}
