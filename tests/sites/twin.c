/* SPDX-License-Identifier: BSD-2-Clause */
/* A library that is built several times: the same code at the same offsets, under the names of -DTWIN=. */
#include <stdlib.h>

#define NAMED_(twin, what) twin##_##what
#define NAMED(twin, what)  NAMED_(twin, what)
#define APART              __attribute__((noinline, noclone))

APART void *NAMED(TWIN, make)(size_t bytes)
{
    void *volatile p = malloc(bytes);
    return p;
}

APART void NAMED(TWIN, drop)(void *p)
{
    free(p);
    __asm__ volatile("" ::: "memory");
}

struct twin {
    void *(*make)(size_t);
    void (*drop)(void *);
};
struct twin twin = {NAMED(TWIN, make), NAMED(TWIN, drop)};

/* The same instructions that were run before it was unloaded: what they do now is to be counted here. */
__attribute__((destructor)) static void end(void)
{
    twin.drop(twin.make(56));
}
