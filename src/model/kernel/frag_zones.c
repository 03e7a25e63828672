/* SPDX-License-Identifier: BSD-2-Clause */
/* Free blocks of a zone: the kernel's two indices of external fragmentation. */
#include "model/kernel/frag.h"

struct blocks {
    uint64_t pages, n, suitable; /* free pages, free blocks; blocks of the wanted order that could be had */
};

static struct blocks count(const uint64_t blocks[], unsigned orders, unsigned order)
{
    struct blocks b = {0};
    for (unsigned i = 0; i < orders; i++) {
        b.n += blocks[i];
        b.pages += blocks[i] << i;
        if (i >= order)
            b.suitable += blocks[i] << (i - order);
    }
    return b;
}

uint64_t frag_unusable_index(const uint64_t blocks[], unsigned orders, unsigned order)
{
    const struct blocks b = count(blocks, orders, order);
    return b.pages ? (b.pages - (b.suitable << order)) * 1000 / b.pages : 1000;
}

int64_t frag_extfrag_index(const uint64_t blocks[], unsigned orders, unsigned order)
{
    const struct blocks b = count(blocks, orders, order);
    if (!b.n)
        return 0;
    if (b.suitable)
        return -1000;
    return 1000 - (int64_t)((1000 + b.pages * 1000 / (UINT64_C(1) << order)) / b.n);
}

static int highest(const uint64_t blocks[], unsigned orders)
{
    int order = (int)orders - 1;
    while (order >= 0 && !blocks[order])
        order--;
    return order;
}

void frag_zone_compute(struct frag_zone *z, const struct memory_zone *of, unsigned n_types)
{
    const struct blocks b = count(of->blocks, of->orders, 0);
    *z = (struct frag_zone){.of = of, .free_pages = b.pages, .free_blocks = b.n};
    z->highest_order = highest(of->blocks, of->orders);
    for (unsigned i = 0; i < of->orders; i++) {
        z->unusable[i] = frag_unusable_index(of->blocks, of->orders, i);
        z->extfrag[i] = frag_extfrag_index(of->blocks, of->orders, i);
    }
    for (unsigned t = 0; t < n_types; t++)
        z->type_highest_order[t] = highest(of->type_blocks[t], MEMORY_ORDERS_MAX);
}
