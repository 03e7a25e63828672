/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_BLOCKS_BPF_H
#define BPF_BLOCKS_BPF_H

/*
 * The page allocator's events, for each attach method, and blocks of pages that are followed until they are freed. The
 * file that includes this defines the handlers of the events; sys/tools/block_attach.h lists the programs for the
 * descriptor.
 *
 * mm_page_free comes once for each block that is freed, whatever the path: free_pages_prepare() has it, and
 * all frees go through there. mm_page_free_batched comes in addition for batches (munmap, truncation,
 * reclaim), in all kernels since 3.3, and is not used.
 *
 * Runs in: the kernel.
 */

#include "bpf/sys.bpf.h"

struct block {
    __u64 frame;
    __u32 order, gfp, migrate_type;
    bool failed;
};

#define BLOCK_ORDERS 11u /* blocks of 2^0 to 2^10 pages: larger ones do not come from the page allocator */

static __always_inline int block_allocated(void *ctx, const struct block *b);
static __always_inline int block_freed(void *ctx, const struct block *b);

/*
 * struct page are in an array whose beginning is aligned to more than the largest block: as good as a frame's number,
 * where a struct page is of a power of two of bytes. Where it is not, the descriptor refuses to follow blocks by it.
 */
static __always_inline __u64 frame_of(const struct page *page)
{
    return (__u64)page / bpf_core_type_size(struct page);
}

/* By position; tp_btf would show nothing more, and let nobody reckon with pointers. */
SEC("raw_tp/mm_page_alloc")
int BPF_PROG(raw_alloc, const struct page *page, __u32 order, __u32 gfp_flags, int migratetype)
{
    struct block b = {frame_of(page), order, gfp_flags, (__u32)migratetype, !page};
    return block_allocated(ctx, &b);
}

SEC("raw_tp/mm_page_free") int BPF_PROG(raw_free, const struct page *page, __u32 order)
{
    struct block b = {.frame = frame_of(page), .order = order};
    return block_freed(ctx, &b);
}

/* By name. */
SEC("tp/kmem/mm_page_alloc") int tp_alloc(struct trace_event_raw_mm_page_alloc *ctx)
{
    struct block b = {ctx->pfn, ctx->order, ctx->gfp_flags, (__u32)ctx->migratetype, ctx->pfn == -1ul};
    return block_allocated(ctx, &b);
}

SEC("tp/kmem/mm_page_free") int tp_free(struct trace_event_raw_mm_page_free *ctx)
{
    struct block b = {.frame = ctx->pfn, .order = ctx->order};
    return block_freed(ctx, &b);
}

/* For a tool that follows blocks: the values of its map `live` are of this type, and have a member `order`. */
#ifdef BLOCK_LIVE

__u32 orders_followed = 0; /* bit N: some block of 2^N pages was live at some time */

static __always_inline void order_followed(__u32 order)
{
    if (UNLIKELY(!(orders_followed >> (order & 31) & 1)))
        __sync_fetch_and_or(&orders_followed, 1u << (order & 31));
}

/* The block that `frame` lies in has been split: what does not come back now stays, in pieces. */
static __always_inline void leave_rest(const BLOCK_LIVE *whole, __u64 frame, __u32 order)
{
    BLOCK_LIVE piece = *whole;
    count(BLOCK_FREED_IN_PARTS);
    for (__u32 k = 0; k < BLOCK_ORDERS - 1; k++) {
        if (k < order || k >= whole->order)
            continue;
        __u64 sibling = (frame >> k ^ 1) << k;
        piece.order = k;
        if (bpf_map_update_elem(&live, &sibling, &piece, BPF_ANY))
            count(SYS_LIVE_FULL);
    }
    __sync_fetch_and_or(&orders_followed, (1u << (whole->order & 31)) - 1);
}

/*
 * Returns whether the block was followed. A block that was allocated as one may be freed in parts: alloc_pages_exact()
 * gives back the tail, a huge page is split. Of two processors that free parts of the same block at the same moment,
 * one finds nothing: that is counted as a free from before the start, and put right when the page is handed out again.
 */
static __attribute__((noinline)) int forget_block(__u64 frame, __u32 order)
{
    for (__u32 k = 0; k < BLOCK_ORDERS; k++) {
        if (k < order || !(orders_followed >> k & 1))
            continue;
        __u64 head = frame >> k << k;
        BLOCK_LIVE *found = bpf_map_lookup_elem(&live, &head);
        if (!found || found->order < k)
            continue;
        BLOCK_LIVE whole = *found;
        if (bpf_map_delete_elem(&live, &head))
            continue;
        if (whole.order > order)
            leave_rest(&whole, frame, order);
        return 1;
    }
    return 0;
}

#endif

#endif
