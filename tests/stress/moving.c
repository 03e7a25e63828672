/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Four threads that make and free blocks without end: a heap that is never still while it is read. A block's size tells
 * who made it: in thread t, function f it is a power of two (by f) plus 4 n + t.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS   4
#define FUNCTIONS 3
#define KEPT      500

#define MAKER(f)                                                                                             \
    __attribute__((noinline)) static void *make_##f(size_t size)                                             \
    {                                                                                                        \
        return malloc(size);                                                                                 \
    }
MAKER(0)
MAKER(1)
MAKER(2)
static void *(*const make[FUNCTIONS])(size_t) = {make_0, make_1, make_2};

static void *work(void *arg)
{
    static void *kept[THREADS][KEPT];
    uint64_t me = (uintptr_t)arg, random = me + 1;
    for (;;) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned function = (unsigned)(random >> 40) % FUNCTIONS, slot = (unsigned)(random >> 44) % KEPT;
        free(kept[me][slot]);
        kept[me][slot] = make[function]((64u << function) + 4 * (random >> 53 & 15) + me);
    }
    return NULL;
}

int main(void)
{
    char c;
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_t id;
        if (pthread_create(&id, NULL, work, (void *)i))
            return 1;
    }
    return read(0, &c, 1) < 0;
}
