/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_CEXPR_H
#define MODEL_CEXPR_H

/*
 * The value of a constant expression of C, as the kernel leaves them in the "print fmt" of its events: numbers, names,
 * casts (which change nothing), ( ) ~ << >> + - & ^ |. Not C: everything is an unsigned number of 64 bits.
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

/** Reads an expression; the place behind it and behind blanks, or NULL: it is none, or has a name that is not known. */
const char *cexpr_parse(const char *text, const struct cexpr_names *names, uint64_t *value);

#endif
