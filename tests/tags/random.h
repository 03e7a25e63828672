/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_TAGS_RANDOM_H
#define TESTS_TAGS_RANDOM_H

/* What random_places.py generates, and what random.c does at random with it. */

#include <stddef.h>
#include <stdio.h>

#include "below.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kind {
    KIND_MALLOC,
    KIND_CALLOC,
    KIND_STRDUP,
    KIND_STRNDUP,
    KIND_POSIX_MEMALIGN,
    KIND_ALIGNED_ALLOC,
    KIND_MEMALIGN,
    KIND_ASPRINTF,
    KIND_VASPRINTF,
    KIND_REALPATH,
    KIND_WCSDUP,
    KIND_REALLOC, /* from here on they take an old object, which may be NULL */
    KIND_REALLOCARRAY,
    KIND_GETLINE,
    KIND_GETDELIM,
    KIND_FREE,
    KIND_ACCOUNT, /* `old` is NULL: so many bytes more; else less */
    KIND_MMAP,    /* over `old`, or with NULL anywhere */
    KIND_MMAP64,
    KIND_MUNMAP, /* gives back `old` if it failed */
    KIND_MREMAP, /* of `alignment` bytes, to `text` or with NULL anywhere */
};

/* `text` has `bytes` - 1 letters. What a place gives back is NULL if it failed, or freed. */
typedef void *(*place_function)(void *old, size_t bytes, size_t alignment, const char *text);

struct place {
    enum kind kind;
    place_function function;
};

struct places {
    unsigned n;
    const struct place *at;
};

/** A stream of this text, and its end: both by code without tags. */
FILE *text_open(const char *text);
void text_close(FILE *f);
extern const wchar_t wide[301]; /* 300 letters */

/** Of the program; a plugin has a function places_of_plugin(). */
extern const struct places places;

#ifdef __cplusplus
}
#endif

#endif
