/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_MAPPING_H
#define MODEL_MAPPING_H

/*
 * The mappings of one process, and where their memory lies.
 *
 * Runs in: the tool. Owns: a list owns its names, until mappings_release().
 */

#include <stdint.h>

#include "base/vec.h"
#include "model/table/table.h"

struct mapping {
    uint64_t start, end;
    char access[5]; /* "r-xp" */
    char *name;     /* of the file, "[heap]", or "" */
    uint64_t rss_bytes, pss_bytes;
    uint64_t anon_bytes; /* resident, and the process's own */
    uint64_t swap_bytes, dirty_bytes, huge_bytes, locked_bytes;
};
struct mappings VEC(struct mapping);

void mappings_release(struct mappings *m);
/** Those with most of it in memory and swap come first; ones of the same size by address. */
void mappings_sort(struct mappings *m);
/** A row for each of the first `top` (0: all), and the sums of all. The caller frees it. */
struct table *mappings_table(const struct mappings *m, uint32_t top, struct mapping *sum);

#endif
