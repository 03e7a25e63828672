/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many short threads, each with a name, a few blocks, and one block that the main thread frees.
 *
 *     many_threads THREADS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define AT_ONCE 8
#define BLOCKS  5

static void *volatile keep;

static void *work(void *arg)
{
    char name[16];
    snprintf(name, sizeof(name), "short %ld", (long)arg);
    prctl(PR_SET_NAME, name);
    for (volatile int i = 0; i < BLOCKS; i++) { /* not unrolled: one call, one stack */
        void *p = malloc(1000);
        keep = p;
        free(p);
    }
    return malloc(2000);
}

int main(int argc, char **argv)
{
    long threads = argc > 1 ? atol(argv[1]) : 0;
    pthread_t ids[AT_ONCE];
    for (long i = 0; i < threads; i += AT_ONCE) {
        for (long k = 0; k < AT_ONCE; k++)
            if (pthread_create(&ids[k], NULL, work, (void *)(i + k)))
                return 1;
        for (long k = 0; k < AT_ONCE; k++) {
            void *p;
            pthread_join(ids[k], &p);
            free(p);
        }
    }
    printf("of_1000 %ld\nof_2000 %ld\n", threads * BLOCKS, threads);
    return 0;
}
