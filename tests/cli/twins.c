/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program whose two files each have a function make(), called from one place. Each allocates blocks of 1000 bytes
 * that are never freed: make() of this file 3 blocks, in an inlined function, make() of twins_other.c 4. Built with
 * -DNEWER it has code before both, so that all addresses differ, and make() of the other file allocates 6 blocks.
 */
#include <stdlib.h>

void *volatile kept;
extern void (*const other_make)(void);

#ifdef NEWER
__attribute__((noinline, used)) static int before(int n)
{
    volatile int sum = 0;
    for (int i = 0; i < n; i++)
        sum += i * n;
    return sum;
}
#endif

__attribute__((always_inline)) static inline void chain(int n)
{
    for (int i = 0; i < n; i++)
        kept = malloc(1000);
}

__attribute__((noinline)) static void make(void)
{
    chain(3);
}

int main(void)
{
    void (*const all[])(void) = {make, other_make};
#ifdef NEWER
    before(3);
#endif
    for (int i = 0; i < 2; i++)
        all[i]();
    return 0;
}
