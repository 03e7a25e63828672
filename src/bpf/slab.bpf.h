/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_SLAB_BPF_H
#define BPF_SLAB_BPF_H

/*
 * The slab allocator's events, for each attach method. The file that includes this defines their handlers;
 * sys/tools/slab_attach.h lists the programs for the descriptor.
 *
 * Runs in: the kernel.
 */

#include "bpf/slab.h"
#include "bpf/sys.bpf.h"

/* Always a constant: code for other methods is left out. */
enum slab_way { SLAB_BTF, SLAB_RAW, SLAB_NAMED };

/** An object that was allocated or is freed. Values that an event does not have are 0. */
struct slab_object {
    __u64 call_site, address;
    const struct kmem_cache *cache;         /* told by position, by events of caches */
    __u64 requested_bytes, allocated_bytes; /* told by all allocations but those that tell the cache */
    __u32 gfp;
};

/*
 * Caches by name. An address identifies a cache only for a short time: the cache may be destroyed and another
 * one made in its place. So what is known of an address holds only as long as the name is at the same place,
 * and at most for one report.
 */
struct slab_name {
    char text[SLAB_NAME_BYTES];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, SLAB_NAMES_MOST);
    __uint(key_size, sizeof(struct slab_name));
    __uint(value_size, sizeof(__u32));
} cache_names SEC(".maps");

__u32 cache_names_used = 0;

/*
 * Returns the number of the cache's present name, from 1 on; 0: there is no room, which is counted as `full`.
 */
static __attribute__((noinline)) __u32 slab_name_number(__u64 cache, __u32 full)
{
    struct slab_name name = {0};
    const struct kmem_cache *s = (const void *)cache;
    bpf_probe_read_kernel_str(name.text, sizeof(name.text), BPF_CORE_READ(s, name));
    __u32 *number = bpf_map_lookup_elem(&cache_names, &name);
    if (number)
        return *number;
    __u32 next = __sync_fetch_and_add(&cache_names_used, 1) + 1;
    if (!bpf_map_update_elem(&cache_names, &name, &next, BPF_NOEXIST))
        return next;
    number = bpf_map_lookup_elem(&cache_names, &name); /* another CPU was faster */
    if (number)
        return *number;
    count(full);
    return 0;
}

/* kmalloc(0) returns the address 16, which is no object: it has no event, but its kfree() has. */
#define SLAB_NOTHING(address) ((address) <= 16)

/*
 * kmalloc and kfree do not tell the cache. It is found by the object's address: from the kernel if it can tell
 * (bpf_get_kmem_cache(), since 6.13), else from the object's page.
 */
extern struct kmem_cache *bpf_get_kmem_cache(__u64 address) __weak __ksym;

/* Set before the programs are loaded, by slab_attach_ready(). Addresses of the kernel's variables of these names; 0: it
 * has none. */
const volatile __u64 page_offset_base_at = 0, vmemmap_base_at = 0;
const volatile bool kernel_tells_cache = false;

/* Values for kernels without these variables: no KASLR and no five-level page tables. */
#define PAGE_OFFSET_FIXED 0xffff888000000000ull
#define VMEMMAP_FIXED     0xffffea0000000000ull
#define PAGE_SHIFT        12

static __always_inline bool is_slab(const struct page *page)
{
    if (bpf_core_enum_value_exists(enum pagetype, PGTY_slab)) /* since 6.11 */
        return BPF_CORE_READ(page, page_type) >> 24 == bpf_core_enum_value(enum pagetype, PGTY_slab);
    return BPF_CORE_READ((const struct page___before_6_11 *)page, flags) >>
               bpf_core_enum_value(enum pageflags, PG_slab) &
           1;
}

/* The cache of an object, read from its page; 0: none, it is of whole pages. */
static __attribute__((noinline)) __u64 slab_cache_read(__u64 address)
{
    __u64 offset = PAGE_OFFSET_FIXED, map = VMEMMAP_FIXED;
    if (page_offset_base_at)
        bpf_probe_read_kernel(&offset, sizeof(offset), (const void *)page_offset_base_at);
    if (vmemmap_base_at)
        bpf_probe_read_kernel(&map, sizeof(map), (const void *)vmemmap_base_at);
    __u64 at = map + ((address - offset) >> PAGE_SHIFT) * bpf_core_type_size(struct page);
    const struct page *page = (const void *)at;
    __u64 head = BPF_CORE_READ(page, compound_head);
    if (head & 1)
        page = (const void *)(head - 1);
    if (!is_slab(page))
        return 0;
    if (bpf_core_type_exists(struct slab)) /* since 5.17 */
        return (__u64)BPF_CORE_READ((const struct slab *)page, slab_cache);
    return (__u64)BPF_CORE_READ((const struct page___before_5_17 *)page, slab_cache);
}

/* The cache of an object, which is not SLAB_NOTHING. 0: none, it is of whole pages. */
static __always_inline __u64 slab_cache_of(const struct slab_object *o, enum slab_way way)
{
    if (o->cache)
        return (__u64)o->cache;
    return way == SLAB_BTF && kernel_tells_cache ? (__u64)bpf_get_kmem_cache(o->address)
                                                 : slab_cache_read(o->address);
}

/* What an object of the cache takes; 0: there is no cache. */
static __always_inline __u64 slab_slot_bytes(__u64 cache)
{
    const struct kmem_cache *s = (const void *)cache;
    return cache ? BPF_CORE_READ(s, size) : 0;
}

static __always_inline int slab_allocated(void *ctx, enum slab_way way, const struct slab_object *o);
static __always_inline int slab_freed(void *ctx, enum slab_way way, const struct slab_object *o);

/* By position, as kernels since 6.1 have them. */
#define SLAB_BY_POSITION(prefix, section, way)                                                               \
    SEC(section "/kmalloc")                                                                                  \
    int BPF_PROG(prefix##_kmalloc, __u64 call_site, __u64 ptr, __u64 bytes_req, __u64 bytes_alloc,           \
                 __u32 gfp)                                                                                  \
    {                                                                                                        \
        struct slab_object o = {call_site, ptr, NULL, bytes_req, bytes_alloc, gfp};                          \
        return slab_allocated(ctx, way, &o);                                                                 \
    }                                                                                                        \
    SEC(section "/kmem_cache_alloc")                                                                         \
    int BPF_PROG(prefix##_cache_alloc, __u64 call_site, __u64 ptr, const struct kmem_cache *s, __u32 gfp)    \
    {                                                                                                        \
        struct slab_object o = {call_site, ptr, s, 0, 0, gfp};                                               \
        return slab_allocated(ctx, way, &o);                                                                 \
    }                                                                                                        \
    SEC(section "/kfree") int BPF_PROG(prefix##_kfree, __u64 call_site, __u64 ptr)                           \
    {                                                                                                        \
        struct slab_object o = {call_site, ptr, NULL, 0, 0, 0};                                              \
        return slab_freed(ctx, way, &o);                                                                     \
    }                                                                                                        \
    SEC(section "/kmem_cache_free")                                                                          \
    int BPF_PROG(prefix##_cache_free, __u64 call_site, __u64 ptr, const struct kmem_cache *s)                \
    {                                                                                                        \
        struct slab_object o = {call_site, ptr, s, 0, 0, 0};                                                 \
        return slab_freed(ctx, way, &o);                                                                     \
    }

SLAB_BY_POSITION(btf, "tp_btf", SLAB_BTF)
SLAB_BY_POSITION(raw, "raw_tp", SLAB_RAW)

/* By name. */
#define SLAB_NAMED_ALLOCATED(event)                                                                          \
    struct slab_object o = {(event)->call_site, (__u64)(event)->ptr,  NULL,                                  \
                            (event)->bytes_req, (event)->bytes_alloc, (event)->gfp_flags};                   \
    return slab_allocated(ctx, SLAB_NAMED, &o)
#define SLAB_NAMED_FREED(event)                                                                              \
    struct slab_object o = {(event)->call_site, (__u64)(event)->ptr, NULL, 0, 0, 0};                         \
    return slab_freed(ctx, SLAB_NAMED, &o)

SEC("tp/kmem/kmalloc") int tp_kmalloc(struct trace_event_raw_kmalloc *ctx)
{
    if (!bpf_core_type_exists(struct trace_event_raw_kmalloc)) {
        struct trace_event_raw_kmem_alloc *old = (void *)ctx;
        SLAB_NAMED_ALLOCATED(old);
    }
    SLAB_NAMED_ALLOCATED(ctx);
}

SEC("tp/kmem/kmem_cache_alloc") int tp_cache_alloc(struct trace_event_raw_kmem_cache_alloc *ctx)
{
    if (!bpf_core_type_exists(struct trace_event_raw_kmem_cache_alloc)) {
        struct trace_event_raw_kmem_alloc *old = (void *)ctx;
        SLAB_NAMED_ALLOCATED(old);
    }
    SLAB_NAMED_ALLOCATED(ctx);
}

/* Before 6.1. */
SEC("tp/kmem/kmalloc_node") int tp_kmalloc_node(struct trace_event_raw_kmem_alloc_node *ctx)
{
    SLAB_NAMED_ALLOCATED(ctx);
}

SEC("tp/kmem/kmem_cache_alloc_node") int tp_cache_alloc_node(struct trace_event_raw_kmem_alloc_node *ctx)
{
    SLAB_NAMED_ALLOCATED(ctx);
}

SEC("tp/kmem/kfree") int tp_kfree(struct trace_event_raw_kfree *ctx)
{
    SLAB_NAMED_FREED(ctx);
}

SEC("tp/kmem/kmem_cache_free") int tp_cache_free(struct trace_event_raw_kmem_cache_free *ctx)
{
    SLAB_NAMED_FREED(ctx);
}

#endif
