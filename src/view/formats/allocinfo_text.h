/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_ALLOCINFO_TEXT_H
#define VIEW_ALLOCINFO_TEXT_H

/*
 * Writes any list of allocation sites, the kernel's or a program's, in the format of the kernel's memory
 * allocation profiling, version 2.0, for tools that read /proc/allocinfo. See collect/accounts/allocinfo.h
 * for the format and its source.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 * Invariant: each row is one line, and reading it back gives the same numbers, whatever the names contain: a
 * byte that would break the line becomes a "?".
 */

#include <stdbool.h>
#include <stdint.h>

#include "view/text/sink.h"

struct allocinfo_row {
    int64_t bytes;
    uint64_t calls;
    const char *file; /* NULL or "": not known */
    uint32_t line;
    const char *module;   /* NULL: none */
    const char *function; /* as file */
    bool accurate;
};

void allocinfo_write_head(struct sink *out);
void allocinfo_write_row(struct sink *out, const struct allocinfo_row *row);

#endif
