/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_CEXPR_H
#define MODEL_CEXPR_H

/*
 * Evaluates constant expressions in C syntax, as they stand in the "print fmt" of the kernel's events:
 * numbers, names, casts (which change nothing), ( ) ~ << >> + - & ^ |. Unlike in C, every value is an
 * unsigned number of 64 bits.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cexpr_names {
    bool (*find)(const void *context, const char *name, size_t len, uint64_t *value);
    const void *context;
};

/** Reads an expression. Returns the position behind it and behind blanks. NULL: it is no expression, or has
 * an unknown name. */
const char *cexpr_parse(const char *text, const struct cexpr_names *names, uint64_t *value);

#endif
