/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *     lookalikes BLOCKS [FRAME]    allocates BLOCKS times, from 64 stacks taken at random that only differ in their
 *                                  return addresses: the stack pointer is the same each time. With FRAME, through a
 *                                  function that finds its frame by rbp alone. Prints how often each was taken.
 */
#include <alloca.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PATHS      8
#define NOT_INLINE __attribute__((noinline))

typedef void (*path_fn)(size_t size, void *next);

static NOT_INLINE void leaf(size_t size, void *next)
{
    (void)next;
    void *p = malloc(size);
    __asm__ volatile("" ::"r"(p) : "memory");
    free(p);
    __asm__ volatile("");
}

static NOT_INLINE void framed(size_t size, void *next)
{
    volatile char *room = alloca(size);
    room[0] = 0;
    leaf(size, next);
    __asm__ volatile("" ::: "memory");
}

static path_fn last = leaf; /* what the inner level calls */

#define PATH(level, i)                                                                                       \
    static NOT_INLINE void path_##level##i(size_t size, void *next)                                          \
    {                                                                                                        \
        ((path_fn)next)(size, last);                                                                         \
        __asm__ volatile("" ::: "memory");                                                                   \
    }
#define NAME(level, i) path_##level##i,
#define EACH(X, level)                                                                                       \
    X(level, 0) X(level, 1) X(level, 2) X(level, 3) X(level, 4) X(level, 5) X(level, 6) X(level, 7)

EACH(PATH, inner)
EACH(PATH, outer)
static const path_fn inner_paths[PATHS] = {EACH(NAME, inner)};
static const path_fn outer_paths[PATHS] = {EACH(NAME, outer)};

int main(int argc, char **argv)
{
    unsigned counts[PATHS * PATHS] = {0};
    uint32_t random = 1;
    if (argc > 2)
        last = framed;
    for (int i = 0; i < atoi(argv[1]); i++) {
        random = random * 1664525 + 1013904223;
        /* Runs of one stack, so that it is remembered, then another. */
        unsigned which = (random >> 24) % (PATHS * PATHS);
        for (unsigned k = 0; k < (random >> 16 & 15); k++, counts[which]++)
            outer_paths[which / PATHS](24, (void *)inner_paths[which % PATHS]);
    }
    for (unsigned i = 0; i < PATHS * PATHS; i++)
        printf("%u ", counts[i]);
    puts("");
    return 0;
}
