/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that does what its input says, a letter a step, and answers each step with a dot: l leaks 16 blocks of
 * 4,000 bytes, c puts as many into a cache, e empties that, t allocates and frees 16 of another place.
 */
#include <stdlib.h>
#include <unistd.h>

#define BLOCKS      16
#define BLOCK_BYTES 4000
#define CACHE_MAX   65536

static void *volatile lost;
static void *cache[CACHE_MAX];
static int cached;

__attribute__((noinline)) static void leak(void)
{
    for (int i = 0; i < BLOCKS; i++)
        lost = malloc(BLOCK_BYTES);
}

__attribute__((noinline)) static void fill(void)
{
    for (int i = 0; i < BLOCKS && cached < CACHE_MAX; i++)
        cache[cached++] = malloc(BLOCK_BYTES);
}

__attribute__((noinline)) static void empty(void)
{
    while (cached)
        free(cache[--cached]);
}

__attribute__((noinline)) static void pass(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        void *volatile p = malloc(BLOCK_BYTES);
        free(p);
    }
}

int main(void)
{
    for (char step; read(0, &step, 1) == 1;) {
        if (step == 'l')
            leak();
        else if (step == 'c')
            fill();
        else if (step == 'e')
            empty();
        else if (step == 't')
            pass();
        if (write(1, ".", 1) != 1)
            return 1;
    }
    return 0;
}
