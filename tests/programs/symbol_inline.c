/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Calls that are inlined into each other. test_symbol.c asks for the names of the marked places, and finds the lines it
 * expects by the comments "line: ...".
 */

#include <stdio.h>
#include <stdlib.h>

#define MARK(name) __asm__ volatile(".globl mark_" #name "\nmark_" #name ": nop")
#define INLINE     static inline __attribute__((always_inline))
#define CALLED     __attribute__((noipa))

INLINE int innermost(int x)
{
    MARK(innermost); /* line: innermost */
    return x * 3;
}

INLINE int middle(int x)
{
    return innermost(x + 1) ^ 5; /* line: middle */
}

CALLED int outer(int x);
CALLED int outer(int x)
{
    int y = middle(x); /* line: outer calls */
    MARK(outer);       /* line: outer */
    return y;
}

/* Two names for one function: people call it by the one without underscores. */
CALLED int __symbol_alias_long_name(int x);
CALLED int __symbol_alias_long_name(int x)
{
    MARK(alias);
    return x + 1;
}
int alias(int x) __attribute__((alias("__symbol_alias_long_name")));

int main(int argc, char **argv)
{
    int parent_only = outer(argc);

    /* A nested function: its DIE stands inside main's. */
    __attribute__((noinline)) int nested(int x)
    {
        MARK(nested);
        return x + parent_only;
    }

    void *p = malloc((size_t)argc * 100);
    __asm__ volatile("" : "+r"(p)); /* or the compiler sees that nobody needs it */
    printf("%s %d %d %d\n", argv[0], outer(argc), alias(argc), nested(argc));
    free(p);
    return 0;
}
