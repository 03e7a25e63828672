/* SPDX-License-Identifier: BSD-2-Clause */
/* leaks: allocates by several functions of the family, and frees a part of it. */
#include <stdlib.h>

static void *volatile kept;

__attribute__((noinline)) static void leak_malloc(void)
{
    for (int i = 0; i < 100; i++)
        kept = malloc(100);
}

__attribute__((noinline)) static void leak_calloc(void)
{
    for (int i = 0; i < 50; i++)
        kept = calloc(3, 70);
}

__attribute__((noinline)) static void leak_realloc(void)
{
    for (int i = 0; i < 20; i++)
        kept = realloc(malloc(10), 5000);
}

__attribute__((noinline)) static void leak_aligned(void)
{
    void *p = NULL;
    for (int i = 0; i < 10; i++)
        kept = posix_memalign(&p, 4096, 500) ? NULL : p;
}

__attribute__((noinline)) static void free_each(void)
{
    for (int i = 0; i < 1000; i++) {
        kept = malloc(64);
        free(kept);
    }
}

int main(void)
{
    leak_malloc();
    leak_calloc();
    leak_realloc();
    leak_aligned();
    free_each();
    return 0;
}
