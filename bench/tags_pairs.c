/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pairs of bench/tags.c. With LAYOUT from 0 to 4 the code lies elsewhere: what a few instructions cost depends on
 * that.
 */
#include <stdlib.h>

#include "tags_pairs.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)
#if defined(LAYOUT) && LAYOUT
__asm__(".pushsection .text\n\t.skip 16 * " TEXT(LAYOUT) " + 64 * (" TEXT(LAYOUT) " & 2)\n\t.popsection");
#endif

#ifdef ALLIUM_MALLOC_HOOKS_H
#define NAME(name) tagged_##name
#else
#define NAME(name) bare_##name
#endif
#define OBJECTS 512u

uint64_t NAME(hot)(void)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        void *p = malloc(16 + i % 16 * 16);
        __asm__ volatile("" : "+r"(p) : : "memory");
        free(p);
    }
    return PAIRS;
}

uint64_t NAME(replaced)(void)
{
    void *objects[OBJECTS];
    uint64_t r = 88172645463325252u;
    for (unsigned i = 0; i < OBJECTS; i++)
        objects[i] = malloc(16 + i % 241);
    for (unsigned i = 0; i < PAIRS; i++) {
        r ^= r << 13;
        r ^= r >> 7;
        r ^= r << 17;
        free(objects[r >> 55]);
        objects[r >> 55] = malloc(16 + (r >> 20) % 241);
    }
    for (unsigned i = 0; i < OBJECTS; i++)
        free(objects[i]);
    return PAIRS + OBJECTS;
}

uint64_t NAME(large)(void)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        void *p = malloc(5000);
        __asm__ volatile("" : "+r"(p) : : "memory");
        free(p);
    }
    return PAIRS;
}

uint64_t NAME(resized)(void)
{
    void *p = malloc(240);
    for (unsigned i = 0; i < PAIRS; i++) {
        p = realloc(p, 236 + i % 2);
        __asm__ volatile("" : "+r"(p) : : "memory");
    }
    free(p);
    return PAIRS + 1;
}
