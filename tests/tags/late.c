/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program without tags loads a library that has some, when its threads run already; they resize and free what the
 * library makes.
 *
 *     late LIBRARY THREADS ROUNDS      prints: PID plugin_make MADE BYTES-MADE LIVE BYTES-LIVE
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS 100

static void *(*_Atomic make)(size_t);
static atomic_ulong made, made_bytes, gone, gone_bytes;
static unsigned rounds;

struct object {
    void *p;
    size_t bytes;
};

static void count(atomic_ulong *calls, atomic_ulong *bytes, size_t n)
{
    ++*calls;
    *bytes += n;
}

static void turn(struct object *o, unsigned draw)
{
    size_t bytes = 1 + draw / 8 % (draw % 97 ? 500 : 90000);
    if (!o->p) {
        o->p = make(bytes);
        count(&made, &made_bytes, bytes);
        o->bytes = bytes;
        return;
    }
    count(&gone, &gone_bytes, o->bytes);
    if (draw % 8 < 3) { /* the new one is charged to whom the old one was */
        o->p = realloc(o->p, bytes);
        count(&made, &made_bytes, bytes);
        o->bytes = bytes;
    } else {
        free(o->p);
        o->p = NULL;
    }
}

static void *work(void *arg)
{
    static struct object objects[64][SLOTS];
    struct object *mine = objects[(uintptr_t)arg];
    uint64_t seed = (uintptr_t)arg + 1;
    while (!make)
        free(malloc(100));
    for (unsigned i = 0; i < rounds; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned draw = (unsigned)(seed >> 33);
        turn(&mine[draw / 4096 % SLOTS], draw);
        free(malloc(draw % 1000));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[64];
    unsigned threads = argc == 4 ? (unsigned)atoi(argv[2]) : 0;
    if (!threads || threads > 64)
        return 2;
    rounds = (unsigned)atoi(argv[3]);
    for (uintptr_t i = 1; i < threads; i++)
        if (pthread_create(&t[i], NULL, work, (void *)i))
            return 3;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    make = library ? (void *(*)(size_t))dlsym(library, "plugin_make") : NULL;
    if (!make) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(4);
    }
    work(NULL);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(t[i], NULL);
    printf("%d plugin_make %lu %lu %lu %lu\n", (int)getpid(), made, made_bytes, made - gone,
           made_bytes - gone_bytes);
    return 0;
}
