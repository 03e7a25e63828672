// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `allium sys kpages`: pages of the kernel's page allocator, by the code that takes them.
 *
 * mm_page_free comes once for each block that is freed, whatever the path: free_pages_prepare() has it, and
 * all frees go through there. mm_page_free_batched comes in addition for batches (munmap, truncation,
 * reclaim), in all kernels since 3.3, and is not used.
 */
#include "bpf/sys.bpf.h"

#include "bpf/kpages.h"

SYS_TABLE(struct kpages_key, struct kpages_value)
SYS_LIVE(struct kpages_live)

const volatile __u64 page_bytes = 4096; /* page size of the machine; set before the programs are loaded */

__u32 orders_followed = 0; /* bit N: some block of 2^N pages was live at some time */

struct block {
    __u64 frame;
    __u32 order, gfp, migrate_type;
    bool failed;
};

static __always_inline void add_count(__u32 what, __u64 more)
{
    __u64 *n = bpf_map_lookup_elem(&counts, &what);
    if (n)
        __sync_fetch_and_add(n, more);
}

static __always_inline void key_now(struct kpages_key *key, void *ctx, const struct block *b)
{
    if (config.parts & KPAGES_BY_ORDER)
        key->order = b->order;
    if (config.parts & KPAGES_BY_TYPE)
        key->migrate_type = b->migrate_type;
    if (config.parts & KPAGES_BY_STACK) {
        key->kernel_stack = kernel_stack_now(ctx);
        key->user_stack = user_stack_now(ctx);
        if (config.stacks & SYS_STACK_USER)
            key->pid = current_ids() >> 32;
    }
    if (config.parts & KPAGES_BY_PROCESS)
        key->pid = current_ids() >> 32;
    if (config.parts & (KPAGES_BY_PROCESS | KPAGES_BY_COMM))
        bpf_get_current_comm(key->comm, sizeof(key->comm));
}

static __always_inline void follow(const struct kpages_key *key, const struct block *b)
{
    struct kpages_live block = {.order = b->order, .key = *key};
    long error = bpf_map_update_elem(&live, &b->frame, &block, BPF_NOEXIST);
    if (UNLIKELY(error == -KERNEL_EEXIST)) {
        add_count(KPAGES_REUSED, 1);
        error = bpf_map_update_elem(&live, &b->frame, &block, BPF_ANY);
    }
    if (UNLIKELY(error))
        count(SYS_LIVE_FULL);
    if (UNLIKELY(!(orders_followed >> (b->order & 31) & 1)))
        __sync_fetch_and_or(&orders_followed, 1u << (b->order & 31));
}

/* The block that `frame` lies in has been split: what does not come back now stays, in pieces. */
static __always_inline bool leave_rest(const struct kpages_live *whole, __u64 frame, __u32 order)
{
    struct kpages_live piece = *whole;
    count(KPAGES_FREED_IN_PARTS);
    for (__u32 k = 0; k < KPAGES_ORDERS - 1; k++) {
        if (k < order || k >= whole->order)
            continue;
        __u64 sibling = (frame >> k ^ 1) << k;
        piece.order = k;
        if (bpf_map_update_elem(&live, &sibling, &piece, BPF_ANY))
            count(SYS_LIVE_FULL);
    }
    __sync_fetch_and_or(&orders_followed, (1u << (whole->order & 31)) - 1);
    return true;
}

/*
 * A block that was allocated as one may be freed in parts: alloc_pages_exact() gives back the tail, a huge page is
 * split. Of two processors that free parts of the same block at the same moment, one finds nothing: that is counted as
 * a free from before the start, and put right when the page is handed out again.
 */
static __attribute__((noinline)) int forget_block(__u64 frame, __u32 order)
{
    for (__u32 k = 0; k < KPAGES_ORDERS; k++) {
        if (k < order || !(orders_followed >> k & 1))
            continue;
        __u64 head = frame >> k << k;
        struct kpages_live *found = bpf_map_lookup_elem(&live, &head);
        if (!found || found->order < k)
            continue;
        struct kpages_live whole = *found;
        if (bpf_map_delete_elem(&live, &head))
            continue;
        if (whole.order > order)
            leave_rest(&whole, frame, order);
        return 0;
    }
    if (!config.filters) /* else it may be any that was not asked for */
        add_count(KPAGES_FREED_BEFORE, 1ull << (order & 31));
    return 0;
}

static __always_inline int allocated(void *ctx, const struct block *b)
{
    struct row_key row = {0};
    if (!wanted())
        return 0;
    key_now(&row.key, ctx, b);
    struct kpages_value *v = row_at(&row);
    if (!v)
        return 0;
    v->gfp |= b->gfp;
    v->orders |= 1u << (b->order & 31);
    if (config.stacks & SYS_STACK_USER)
        v->time_ns = bpf_ktime_get_ns();
    v->migrate_types |= 1u << (b->migrate_type & 31);
    if (UNLIKELY(b->failed)) {
        v->failures++;
        count(KPAGES_FAILED);
    } else {
        v->allocations++;
        v->allocated_pages += 1ull << (b->order & 31);
        row_measure(v, page_bytes << (b->order & 31));
    }
    row_done(v);
    if (follow_live && !b->failed)
        follow(&row.key, b);
    return 0;
}

static __always_inline int freed(void *ctx, const struct block *b)
{
    struct row_key row = {0};
    /* Whoever frees it: it was followed because its allocation was wanted. */
    if (follow_live && runs())
        forget_block(b->frame, b->order);
    if (config.parts & KPAGES_BY_TYPE || !wanted()) /* a free does not tell the type */
        return 0;
    key_now(&row.key, ctx, b);
    struct kpages_value *v = row_at(&row);
    if (!v)
        return 0;
    v->orders |= 1u << (b->order & 31);
    if (config.stacks & SYS_STACK_USER)
        v->time_ns = bpf_ktime_get_ns();
    v->frees++;
    v->freed_pages += 1ull << (b->order & 31);
    row_done(v);
    return 0;
}

/*
 * struct page are in an array whose beginning is aligned to more than the largest block: as good as a frame's number,
 * where a struct page is of a power of two of bytes. Where it is not, the descriptor refuses to follow blocks by it.
 */
static __always_inline __u64 frame_of(const struct page *page)
{
    return (__u64)page / bpf_core_type_size(struct page);
}

/* By position; tp_btf would show nothing more, and let nobody reckon with pointers. */
#define PAGE_ALLOC(name, section)                                                                            \
    SEC(section)                                                                                             \
    int BPF_PROG(name, const struct page *page, __u32 order, __u32 gfp_flags, int migratetype)               \
    {                                                                                                        \
        struct block b = {frame_of(page), order, gfp_flags, (__u32)migratetype, !page};                      \
        return allocated(ctx, &b);                                                                           \
    }
#define PAGE_FREE(name, section)                                                                             \
    SEC(section) int BPF_PROG(name, const struct page *page, __u32 order)                                    \
    {                                                                                                        \
        struct block b = {.frame = frame_of(page), .order = order};                                          \
        return freed(ctx, &b);                                                                               \
    }

PAGE_ALLOC(raw_alloc, "raw_tp/mm_page_alloc")
PAGE_FREE(raw_free, "raw_tp/mm_page_free")

/* By name. */
SEC("tp/kmem/mm_page_alloc") int tp_alloc(struct trace_event_raw_mm_page_alloc *ctx)
{
    struct block b = {ctx->pfn, ctx->order, ctx->gfp_flags, (__u32)ctx->migratetype, ctx->pfn == -1ul};
    return allocated(ctx, &b);
}

SEC("tp/kmem/mm_page_free") int tp_free(struct trace_event_raw_mm_page_free *ctx)
{
    struct block b = {.frame = ctx->pfn, .order = ctx->order};
    return freed(ctx, &b);
}
