/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PAGE_OWNER_H
#define COLLECT_PAGE_OWNER_H

/*
 * Who allocated the pages that are in use: the text of /sys/kernel/debug/page_owner, which a kernel has that was built
 * with CONFIG_PAGE_OWNER and booted with page_owner=on; and what page_owner_sort of the kernel's source makes of it,
 * where a line before each block says how many there are of it. A block of pages is a few lines, and an empty one.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its texts, until page_owner_release().
 * Invariant: nothing that is read is trusted; a block that is not understood is counted and left out.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/** A block of pages. What a kernel does not tell is PAGE_OWNER_UNKNOWN, or "". */
struct page_owner_block {
    uint64_t times; /* how many there are of it: 1, except after page_owner_sort */
    uint64_t gfp;
    uint32_t order;
    bool is_slab;                  /* "Slab cache page", or a flag of it */
    uint64_t pid, tgid;            /* of the thread and of its process */
    uint64_t time_ns, freed_ns;    /* since the boot: its allocation, and when it was free last before that */
    char comm[32];                 /* before Linux 6.0: "" */
    char type[24], block_type[24]; /* "Unmovable": wanted by the request, and of the page block it is in */
    struct buf gfp_names;          /* "GFP_KERNEL|__GFP_ZERO" */
    struct buf stack;              /* "alloc_pages_noprof+0x12/0x40\n...", the innermost first */
};
#define PAGE_OWNER_UNKNOWN UINT64_MAX

struct page_owner {
    struct page_owner_block block;
    uint64_t times;     /* of the next block; 0: nothing said it */
    uint64_t broken;    /* lines that were not understood */
    bool begun, placed; /* its first line, and the one with its place, were read */
};

/** The first line of a block begins so. */
#define PAGE_OWNER_MAGIC "Page allocated via order "

/** Returns whether a text begins as these files do. */
bool page_owner_is_text(const char *text, size_t len);
/** Takes a line, without its end. Returns whether `block` is whole now; it stays until the next call. */
bool page_owner_line(struct page_owner *p, const char *line, size_t len);
/** After the last line. Returns the same of what the last lines were. */
bool page_owner_end(struct page_owner *p);
void page_owner_release(struct page_owner *p);

#endif
