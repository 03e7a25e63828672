/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads two libraries in turns, again and again, while other threads allocate; each makes blocks of its own size.
 *
 *     twins ROUNDS THREADS LIBRARY LIBRARY
 *
 * Says how many blocks each library made, and at how many different addresses they were loaded.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCKS 3

static _Atomic int stop;
static void *volatile keep;

static void *churn(void *arg)
{
    void *mine[16] = {NULL};
    for (unsigned i = 0; !stop; i++) {
        free(mine[i % 16]);
        mine[i % 16] = malloc(100);
    }
    for (int i = 0; i < 16; i++)
        free(mine[i]);
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t threads[16];
    uintptr_t addresses[64];
    unsigned known = 0, shared = 0;
    if (argc < 5)
        return 2;
    long rounds = atol(argv[1]);
    int n = atoi(argv[2]);
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, churn, NULL);
    for (long i = 0; i < rounds; i++) {
        void *library = dlopen(argv[3 + i % 2], RTLD_NOW | RTLD_LOCAL);
        struct link_map *map = library;
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        void *(*make)(size_t) = (void *(*)(size_t))dlsym(library, "twin_make");
        for (int k = 0; k < BLOCKS; k++) {
            keep = make(i % 2 ? 5000 : 3000);
            free(keep);
        }
        unsigned k = 0;
        while (k < known && addresses[k] != map->l_addr)
            k++;
        shared += k < known && i % 2;
        if (k == known && known < 64)
            addresses[known++] = map->l_addr;
        dlclose(library);
    }
    stop = 1;
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    printf("blocks %ld\naddresses %u\nshared %u\n", rounds / 2 * BLOCKS, known, shared);
    return 0;
}
