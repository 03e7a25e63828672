/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_MAPPING_H
#define MODEL_MAPPING_H

/*
 * The mappings of one process, and where their memory is.
 *
 * Runs in: the tool. Owns: a list owns its names, until mappings_release().
 */

#include <stdint.h>

#include "base/vec.h"
#include "model/table/table.h"

struct mapping {
    uint64_t start, end;
    char access[5]; /* "r-xp" */
    char *name;     /* name of the file, "[heap]", or "" */
    uint64_t rss_bytes, pss_bytes;
    uint64_t anon_bytes; /* resident private memory */
    uint64_t swap_bytes, dirty_bytes, huge_bytes, locked_bytes;
};
struct mappings VEC(struct mapping);

void mappings_release(struct mappings *m);
/** Sorts by memory and swap, largest first; mappings of equal size by address. */
void mappings_sort(struct mappings *m);
/** Makes a table of the first `top` mappings (0: all), and the sum of all mappings. The caller frees it. */
struct table *mappings_table(const struct mappings *m, uint32_t top, struct mapping *sum);

#endif
