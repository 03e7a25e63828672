/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_ALLOC_FUNCTIONS_H
#define SYS_ALLOC_FUNCTIONS_H

/*
 * The functions of allocators: which of their arguments is the size, and which is the object that is freed.
 *
 * Runs in: the tool. Threads: any. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"

enum alloc_role {
    ALLOC_RETURNS, /* returns an object, or stores it */
    ALLOC_FREES,
    ALLOC_LOADS, /* called by the loader when it has loaded or unloaded a library */
};

struct alloc_function {
    const char *name;
    const char *path; /* the end of the path of its file; NULL: any file */
    enum alloc_role role;
    uint32_t what;    /* MEMLEAK_COOKIE(), of bpf/memleak.h */
    bool throws;      /* may end by an exception */
    bool is_operator; /* of C++: counts only where the allocator has its own, else it calls malloc() */
};

struct alloc_functions {
    struct VEC(struct alloc_function) all;
    struct VEC(char *) texts; /* of names that the user gave */
    bool may_come;            /* ... in a library that may be loaded later */
    bool user_given;          /* by --functions; else the known ones */
};

/** Fills in the functions that are known by name. Release it in any case. */
void alloc_functions_init(struct alloc_functions *f);
/**
 * Takes "[PATH:]alloc=NAME,free=NAME[,size=arg1[*arg2]]" in place of them. Returns 0, or -EINVAL with a line.
 */
int alloc_functions_parse(struct alloc_functions *f, const char *text, struct error *e);
void alloc_functions_release(struct alloc_functions *f);

#endif
