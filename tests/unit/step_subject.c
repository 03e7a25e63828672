/* SPDX-License-Identifier: BSD-2-Clause */
/* Prologues and epilogues of many shapes: recursion, alloca, realigned stacks, calls through the PLT, tail calls. */
#include "step_subject.h"

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define NAME(n)     JOIN(n, SUBJECT)

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static __attribute__((noinline)) int NAME(leaf_)(int a, int b)
{
    return a * 31 + b;
}

static __attribute__((noinline)) int NAME(deep_)(int n)
{
    if (n == 0)
        return NAME(leaf_)(1, 2);
    int below = NAME(deep_)(n - 1);
    return NAME(leaf_)(below, n) + below;
}

static __attribute__((noinline)) int NAME(variable_)(int n)
{
    char *p = alloca((size_t)n * 8 + 1);
    memset(p, n, (size_t)n * 8 + 1);
    return p[n] + NAME(deep_)(2);
}

static __attribute__((noinline)) int NAME(aligned_)(int n)
{
    double __attribute__((aligned(64))) wide[16];
    for (int i = 0; i < 16; i++)
        wide[i] = NAME(leaf_)(n, i);
    return (int)wide[n & 15] + NAME(deep_)(1);
}

static __attribute__((noinline)) int NAME(tail_)(int n)
{
    return NAME(deep_)(n & 3);
}

static __attribute__((noinline)) int NAME(many_)(int a, int b, int c, int d, int e, int f, int g, int h,
                                                 int i)
{
    return NAME(leaf_)(a, b) + NAME(leaf_)(c, d) + NAME(leaf_)(e, f) + NAME(leaf_)(g, h) + i;
}

int NAME(subject_c_)(int n)
{
    int numbers[8];
    char text[32];
    for (int i = 0; i < 8; i++)
        numbers[i] = NAME(leaf_)(i, n) % 17;
    qsort(numbers, 8, sizeof(*numbers), compare);
    snprintf(text, sizeof(text), "%d %s", numbers[0], "x");
    char *copy = strdup(text);
    int sum = NAME(deep_)(n) + NAME(variable_)(n) + NAME(aligned_)(n) + NAME(tail_)(n) +
              NAME(many_)(1, 2, 3, 4, 5, 6, 7, 8, n) + (int)strlen(copy);
    free(copy);
    return sum;
}
