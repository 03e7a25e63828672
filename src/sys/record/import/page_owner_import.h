/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_PAGE_OWNER_IMPORT_H
#define SYS_PAGE_OWNER_IMPORT_H

/*
 * The text of page_owner as the accounts of a trace: which pages are in use at one moment, by whom they were allocated.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the rows, until page_owner_rows_release().
 */

#include "base/hash_map.h"
#include "collect/kernel/page_owner.h"
#include "sys/record/import/kernel_import.h"

/** Blocks that are alike in all but their times. */
struct page_owner_row {
    uint32_t order, type, block_type; /* types: see kernel_import_type() */
    uint64_t gfp, pid, tgid;          /* PAGE_OWNER_UNKNOWN: not known */
    uint32_t comm, stack;             /* numbers of texts */
    uint64_t blocks;
    uint64_t first_ns, last_ns;       /* since the boot; PAGE_OWNER_UNKNOWN: not known */
    uint64_t freed_first, freed_last; /* ... when these pages were free last before */
};

struct page_owner_rows {
    struct VEC(struct page_owner_row) all;
    struct VEC(char *) texts;
    struct map index, text_index;
};

/** Accounts a block, and adds it to the rows. */
void page_owner_import_add(struct kernel_import *i, struct page_owner_rows *rows,
                           const struct page_owner_block *b);
/** After the last one. `broken`: lines that were not understood; `written_ns`: CLOCK_REALTIME. */
void page_owner_import_end(struct kernel_import *i, uint64_t broken, uint64_t written_ns);
void page_owner_rows_release(struct page_owner_rows *rows);

#endif
