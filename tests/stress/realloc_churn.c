/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * realloc that grows, shrinks, moves, and fails: a block whose realloc failed is what it was. Two threads, each with
 * its own blocks.
 *
 *     realloc_churn ROUNDS
 *
 * Says what the books must have more than after a run of 0 rounds. Each successful realloc is a free and an allocation.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS  64
#define THREADS 2

static long rounds;
static _Atomic uint64_t allocated, freed, failed, wrong, live, live_bytes;

static void *work(void *arg)
{
    char *block[BLOCKS] = {NULL};
    size_t size[BLOCKS] = {0};
    uint64_t random = (uint64_t)(long)arg + 1, mine = 0, gone = 0, refused = 0;
    for (long i = 0; i < rounds; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned k = (unsigned)(random >> 40) % BLOCKS;
        size_t want = 1 + (random >> 20) % ((random >> 60) ? 500 : 300000);
        if (random % 8 == 0) {
            volatile size_t huge = (random >> 16) % 2 ? SIZE_MAX - 4096 : PTRDIFF_MAX - 100000;
            void *p = realloc(block[k], huge);
            wrong += p != NULL || errno != ENOMEM;
            refused++;
            want = size[k];
        } else if (random % 8 == 1) {
            gone += block[k] != NULL;
            free(block[k]);
            block[k] = NULL;
            want = 0;
        } else {
            gone += block[k] != NULL;
            mine++;
            block[k] = realloc(block[k], want);
            block[k][0] = (char)k;
            block[k][want - 1] = (char)k;
        }
        size[k] = want;
        wrong += block[k] && (block[k][0] != (char)k || block[k][want - 1] != (char)k);
    }
    for (unsigned k = 0; k < BLOCKS; k++) {
        live += block[k] != NULL;
        live_bytes += size[k];
    }
    allocated += mine;
    freed += gone;
    failed += refused;
    return NULL; /* the blocks stay, so that live ones can be compared */
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    rounds = argc > 1 ? atol(argv[1]) : 0;
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("allocated %lu\nfreed %lu\nfailed %lu\nlive %lu\nlive_bytes %lu\nwrong %lu\n",
           (unsigned long)allocated, (unsigned long)freed, (unsigned long)failed, (unsigned long)live,
           (unsigned long)live_bytes, (unsigned long)wrong);
    return 0;
}
