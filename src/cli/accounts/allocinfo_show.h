/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_ALLOCINFO_SHOW_H
#define CLI_ALLOCINFO_SHOW_H

/*
 * What `allium sys allocinfo` says of one reading, or of two: a screen, JSON, or the kernel's own text; and of lines that were skipped.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collect/accounts/allocinfo.h"
#include "model/accounts/alloc_table.h"
#include "view/text/sink.h"

struct allocinfo_reading {
    struct allocinfo info;
    const char *source; /* for people */
};

struct allocinfo_show {
    struct alloc_shape shape;
    const char *group;         /* its word */
    const struct query *query; /* NULL: everything */
    bool json, kernel_text;
    bool line;                     /* JSON in one line: there will be more */
    uint64_t began_ns, elapsed_ns; /* of rates: since the first reading, and since the last one */
    uint64_t time_ns;              /* since 1970; 0: it is not known when the kernel wrote it */
};

/** `before` may be NULL: nothing to compare with. */
void allocinfo_show(struct sink *out, const struct allocinfo_show *o, struct alloc_texts *texts,
                    const struct allocinfo_reading *before, const struct allocinfo_reading *after);
/** On stderr: which lines were skipped, if any were. */
void allocinfo_say_losses(const struct allocinfo_reading *r);

#endif
