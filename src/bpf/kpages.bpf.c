// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium sys kpages`: pages of the kernel's page allocator, by the code that takes them. */
#include "bpf/sys.bpf.h"

#include "bpf/kpages.h"

SYS_TABLE(struct kpages_key, struct kpages_value)
SYS_LIVE(struct kpages_live)

#define BLOCK_LIVE           struct kpages_live
#define BLOCK_FREED_IN_PARTS KPAGES_FREED_IN_PARTS
#include "bpf/blocks.bpf.h"

const volatile __u64 page_bytes = 4096; /* page size of the machine; set before the programs are loaded */

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
        comm_now(key->comm);
}

static __always_inline void follow(const struct kpages_key *key, const struct block *b)
{
    struct kpages_live block = {.order = b->order, .key = *key};
    int error = (int)bpf_map_update_elem(&live, &b->frame, &block, BPF_NOEXIST);
    if (UNLIKELY(error == -KERNEL_EEXIST)) {
        count_many(KPAGES_REUSED, 1);
        error = (int)bpf_map_update_elem(&live, &b->frame, &block, BPF_ANY);
    }
    if (UNLIKELY(error))
        count(SYS_LIVE_FULL);
    order_followed(b->order);
}

static __always_inline int block_allocated(void *ctx, const struct block *b)
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

static __always_inline int block_freed(void *ctx, const struct block *b)
{
    struct row_key row = {0};
    /* Whoever frees it: it was followed because its allocation was wanted. */
    if (follow_live && runs() && !forget_block(b->frame, b->order) && !config.filters)
        count_many(KPAGES_FREED_BEFORE,
                   1ull << (b->order & 31));        /* with filters it may be any that was not asked for */
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
