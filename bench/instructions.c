/* SPDX-License-Identifier: BSD-2-Clause */
/* What bench/instructions counts: COUNT pairs of malloc and free of SIZE bytes, from one place or from two in turns. */
#include <stdlib.h>

/* On a stack of five frames: this, main(), and three of libc's. */
#define PAIR(name)                                                                                           \
    static __attribute__((noinline)) void name(size_t size)                                                  \
    {                                                                                                        \
        void *p = malloc(size);                                                                              \
        __asm__ volatile("" ::"r"(p) : "memory");                                                            \
        free(p);                                                                                             \
        __asm__ volatile("# " #name ::: "memory");                                                           \
    }
PAIR(here)
PAIR(there)

/* SIZE PLACES COUNT */
int main(int argc, char **argv)
{
    if (argc <= 3)
        return 1;
    void (*const places[])(size_t) = {here, atoi(argv[2]) == 2 ? there : here};
    size_t size = strtoul(argv[1], NULL, 10);
    for (long i = strtol(argv[3], NULL, 10); i > 0; i--)
        places[i & 1](size);
    return 0;
}
