/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_ALLOC_PLACES_H
#define SYS_ALLOC_PLACES_H

/*
 * Where in a file the functions of an allocator are, and where a uprobe on each costs least.
 *
 * Runs in: the tool. Threads: one. Owns: what it found in each file, until alloc_places_free(). A file is read once:
 * processes share libraries.
 */

#include <sys/types.h>

#include "base/error.h"
#include "symbol/probe/probe_place.h"
#include "sys/uprobe/alloc_functions.h"

struct alloc_place {
    const struct alloc_function *function;
    uint64_t address, bytes; /* of the function; 0 bytes: not known */
    uint64_t offset;         /* of the probe, in the file */
    struct probe_place place;
    struct VEC(uint64_t) returns; /* in the file: of a function that may throw */
    bool reaches;                 /* it calls another one that allocates, as far as its code shows */
};

struct alloc_file {
    dev_t dev;
    ino_t ino;
    struct VEC(struct alloc_place) places; /* empty: it has no such function */
    bool allocates;                        /* one of them returns objects */
};

struct alloc_places;

/** `functions` must outlive it. */
struct alloc_places *alloc_places_new(const struct alloc_functions *functions);
void alloc_places_free(struct alloc_places *p);
/** Returns what is in the file; NULL: it cannot be read, or is no program for this machine. */
const struct alloc_file *alloc_places_in(struct alloc_places *p, const char *path);

#endif
