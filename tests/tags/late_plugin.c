/* SPDX-License-Identifier: BSD-2-Clause */
/* A plugin that steps.c loads. Built with -include allium/malloc_hooks.h. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <allium/tag.h>

void *later_call(size_t bytes);
void *later_line(size_t bytes);
void *later_outer(size_t bytes);
void *later_own(size_t bytes);
void *later_cc(size_t bytes) __asm__("_Z8later_ccm"); /* as a C++ compiler would call it */

static __attribute__((noinline)) void *later_inner(size_t bytes)
{
    void *volatile p = malloc(bytes);
    return p;
}

void *later_call(size_t bytes)
{
    void *p = later_inner(bytes);
    if (p)
        memset(p, 1, bytes);
    return p;
}

/* A place that no descriptor in the file tells of. */
void *later_line(size_t bytes)
{
    char *text;
    return asprintf(&text, "%zu", bytes) < 0 ? NULL : text;
}

static inline __attribute__((always_inline)) void *later_inlined(size_t bytes)
{
    char *text;
    return asprintf(&text, "%zu", bytes) < 0 ? NULL : text;
}

void *later_outer(size_t bytes)
{
    void *volatile p = later_inlined(bytes);
    return p;
}

void *later_cc(size_t bytes)
{
    return calloc(bytes, 1);
}

void *later_own(size_t bytes)
{
    struct allium_tag *tag = ALLIUM_TAG("cache", "later tenant=blue");
    if (allium_should_fail(tag))
        return NULL;
    allium_account(tag, bytes);
    return tag;
}
