/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KERNEL_PAGES_BPF_H
#define BPF_KERNEL_PAGES_BPF_H

/*
 * What the kernel keeps of a page. As in kernel.h, only names mean anything.
 *
 * Runs in: the kernel. A part of kernel.h.
 */

#include "bpf/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct page {
    unsigned long private;
    unsigned int page_type; /* its upper byte, since 6.11 */
    unsigned long compound_head;
};

struct page___before_6_11 {
    unsigned long flags; /* a struct since 6.18 */
};

struct page___before_5_17 {
    struct kmem_cache *slab_cache;
};

struct slab { /* the same memory as the page */
    struct kmem_cache *slab_cache;
};

enum migratetype { MIGRATE_MOVABLE = 1 };
enum pagetype { PGTY_slab = 0xf5 };
enum pageflags { PG_slab = 9, PG_head = 6 }; /* PG_slab: until 6.9 */

/* Pages that belong together, since 5.16. Its flags come first. */
struct folio {
    struct address_space *mapping;
    unsigned long index;    /* in the file, in pages */
    unsigned long _flags_1; /* since 6.6 the lowest byte has the order of a large folio */
};

struct folio___before_6_6 {
    unsigned char _folio_order;
};

#pragma clang attribute pop

#endif
