/* SPDX-License-Identifier: BSD-2-Clause */
/* One of two libraries of the same size: they are loaded in turns at one address, and differ by their names. */
#include <stdlib.h>

#define JOIN(a, b)  a##b
#define NAME(which) JOIN(twin_, which)

void *twin_make(size_t size);

__attribute__((noinline)) static void *NAME(TWIN)(size_t size)
{
    void *p = malloc(size);
    __asm__ volatile("" : "+r"(p));
    return p;
}

void *twin_make(size_t size)
{
    void *p = NAME(TWIN)(size);
    __asm__ volatile("" : "+r"(p));
    return p;
}
