// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `allium sys memleak` of the kernel: objects of the slab allocator and blocks of pages, from the event that allocates
 * them to the one that frees them.
 *
 * An event does as little as it can: an allocation adds one entry to a map, a free removes it. Sums, ages and growth
 * are made from the entries when rows are shown. The table of rows has only frees that had no event, which are rare.
 */
#include "bpf/slab.bpf.h"

#include "bpf/memleak_kernel.h"
#include "bpf/sampled_bytes.bpf.h"

SYS_TABLE(struct memleak_kernel_key, struct memleak_kernel_value)
SYS_LIVE(struct memleak_kernel_live)

#define BLOCK_LIVE           struct memleak_kernel_live
#define BLOCK_FREED_IN_PARTS MEMLEAK_KERNEL_FREED_IN_PARTS
#include "bpf/blocks.bpf.h"

/* Set before the programs are loaded: the page size of the machine; which kinds of memory are followed. */
const volatile __u64 page_bytes = 4096;
const volatile __u32 kinds = (1u << MEMLEAK_KERNEL_KINDS) - 1;

#define PAGES_OF_BLOCKS (1u << MEMLEAK_KERNEL_PAGES | 1u << MEMLEAK_KERNEL_MOVABLE)

/* Caches by their address: what an allocation has to know of its cache costs one look into this map. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, SLAB_NAMES_MOST);
    __uint(key_size, sizeof(__u64));
    __uint(value_size, sizeof(struct memleak_kernel_cache));
} caches SEC(".maps");

/* By the number of a cache's name: its frees that had no event. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, MEMLEAK_KERNEL_CACHES_MOST);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(__u64));
} unseen_frees SEC(".maps");

/* The first time that a cache is seen, or another cache at its address. */
static __attribute__((noinline)) __u32 cache_named(__u64 cache, __u64 name_address)
{
    struct memleak_kernel_cache entry = {.name_address = name_address,
                                         .name = slab_name_number(cache, MEMLEAK_KERNEL_NAMES_FULL)};
    if (bpf_map_update_elem(&caches, &cache, &entry, BPF_ANY))
        count(MEMLEAK_KERNEL_NAMES_FULL);
    return entry.name;
}

/* Returns the number of the cache's name. kmalloc's caches, which its events do not tell, are never destroyed. */
static __always_inline __u32 name_of_cache(const struct slab_object *o, __u64 cache, enum slab_way way)
{
    const struct kmem_cache *told = way == SLAB_NAMED ? (const struct kmem_cache *)cache : o->cache;
    __u64 name_address = 0;
    if (!cache)
        return MEMLEAK_KERNEL_LARGE;
    if (told)
        name_address = way == SLAB_BTF ? (__u64)told->name : (__u64)BPF_CORE_READ(told, name);
    const struct memleak_kernel_cache *known = bpf_map_lookup_elem(&caches, &cache);
    if (LIKELY(known && known->name_address == name_address))
        return known->name;
    return cache_named(cache, name_address);
}

/* The address of a live object was handed out again. The object was freed without an event, and is forgotten. */
static __attribute__((noinline)) int freed_unseen(__u64 address)
{
    struct row_key row = {0};
    const struct memleak_kernel_live *found = bpf_map_lookup_elem(&live, &address);
    if (!found)
        return 0;
    row.key = found->key;
    bpf_map_delete_elem(&live, &address);
    count(row.key.kind == MEMLEAK_KERNEL_SLAB ? MEMLEAK_KERNEL_UNSEEN_FREES : MEMLEAK_KERNEL_UNSEEN_PAGES);
    __u64 *of_cache = bpf_map_lookup_elem(&unseen_frees, &row.key.cache);
    if (of_cache)
        __sync_fetch_and_add(of_cache, 1);
    struct memleak_kernel_value *v = row_at(&row);
    if (v) {
        v->unseen_frees++;
        row_done(v);
    }
    return 0;
}

/* An object or a block that is not followed: it was not sampled, or is not wanted. */
static __always_inline int leave_out(__u64 address)
{
    if (UNLIKELY(bpf_map_lookup_elem(&live, &address) != NULL))
        freed_unseen(address);
    return 0;
}

/* A task that is not wanted may be given the address of an object that was freed without an event. */
static __always_inline int leave_unwanted(__u64 address)
{
    return runs() ? leave_out(address) : 0;
}

static __always_inline void follow(__u64 address, const struct memleak_kernel_live *object)
{
    int error = (int)bpf_map_update_elem(&live, &address, object, BPF_NOEXIST);
    if (UNLIKELY(error == -KERNEL_EEXIST)) {
        freed_unseen(address);
        error = (int)bpf_map_update_elem(&live, &address, object, BPF_ANY);
    }
    if (UNLIKELY(error))
        count(SYS_LIVE_FULL);
    else if (period_bytes > 1)
        count(MEMLEAK_KERNEL_SAMPLED);
}

static __always_inline void stacks_now(struct memleak_kernel_key *key, void *ctx)
{
    key->kernel_stack = kernel_stack_now(ctx);
    key->user_stack = user_stack_now(ctx);
    if (config.stacks & SYS_STACK_USER)
        key->pid = current_ids() >> 32;
}

static __always_inline __u64 bytes_of(const struct slab_object *o, enum slab_way way)
{
    const struct kmem_cache *told = o->cache;
    if (!told)
        return o->allocated_bytes;
    return way == SLAB_BTF ? told->size : BPF_CORE_READ(told, size);
}

static __always_inline int slab_allocated(void *ctx, enum slab_way way, const struct slab_object *told)
{
    const struct slab_object o = *told;
    if (!o.address || !(kinds & 1u << MEMLEAK_KERNEL_SLAB))
        return 0;
    if (!wanted())
        return leave_unwanted(o.address);
    const __u64 bytes = bytes_of(&o, way);
    if (!sampled(bytes))
        return leave_out(o.address);
    struct memleak_kernel_live object = {.time_ns = bpf_ktime_get_ns(),
                                         .bytes = bytes,
                                         .key = {.kind = MEMLEAK_KERNEL_SLAB,
                                                 .cache = name_of_cache(&o, slab_cache_of(&o, way), way),
                                                 .kernel_stack = SYS_NO_STACK,
                                                 .user_stack = SYS_NO_STACK}};
    if (config.parts & MEMLEAK_KERNEL_BY_SITE)
        object.key.call_site = o.call_site;
    if (config.parts & MEMLEAK_KERNEL_BY_STACK)
        stacks_now(&object.key, ctx);
    follow(o.address, &object);
    return 0;
}

static __always_inline int slab_freed(void *ctx, enum slab_way way, const struct slab_object *o)
{
    if (SLAB_NOTHING(o->address) || !runs())
        return 0;
    /* A lookup costs less than a removal, and most objects are not sampled. */
    if (period_bytes > 1 && LIKELY(!bpf_map_lookup_elem(&live, &o->address)))
        return 0;
    const int error = (int)bpf_map_delete_elem(&live, &o->address);
    if (UNLIKELY(error && error != -KERNEL_ENOENT))
        count(MEMLEAK_KERNEL_FREES_LOST);
    else if (error && period_bytes <= 1 &&
             !config.filters) /* with filters it may be any that was not wanted */
        count(MEMLEAK_KERNEL_FREED_BEFORE);
    return 0;
}

static __always_inline enum memleak_kernel_kind kind_of_block(const struct block *b)
{
    const __u32 movable = bpf_core_enum_value(enum migratetype, MIGRATE_MOVABLE);
    return b->migrate_type == movable ? MEMLEAK_KERNEL_MOVABLE : MEMLEAK_KERNEL_PAGES;
}

static __always_inline int block_allocated(void *ctx, const struct block *b)
{
    const enum memleak_kernel_kind kind = kind_of_block(b);
    if (b->failed || !(kinds & PAGES_OF_BLOCKS))
        return 0;
    if (!(kinds & 1u << kind) || !wanted())
        return leave_unwanted(b->frame);
    const __u64 bytes = page_bytes << (b->order & 15);
    if (!sampled(bytes))
        return leave_out(b->frame);
    struct memleak_kernel_live object = {
        .time_ns = bpf_ktime_get_ns(),
        .order = b->order,
        .bytes = bytes,
        .key = {.kind = kind, .kernel_stack = SYS_NO_STACK, .user_stack = SYS_NO_STACK}};
    if (config.parts & (MEMLEAK_KERNEL_BY_SITE | MEMLEAK_KERNEL_BY_STACK))
        stacks_now(&object.key, ctx);
    follow(b->frame, &object);
    order_followed(b->order);
    return 0;
}

static __always_inline int block_freed(void *ctx, const struct block *b)
{
    if (!(kinds & PAGES_OF_BLOCKS) || !runs())
        return 0;
    if (!forget_block(b->frame, b->order) && period_bytes <= 1 && !config.filters)
        count_many(MEMLEAK_KERNEL_PAGES_BEFORE, 1ull << (b->order & 31));
    return 0;
}
