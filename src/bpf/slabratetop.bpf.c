// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `allium sys slabratetop`: the allocation rate of slab caches.
 *
 * Neither kmalloc nor kfree tells the cache. It is found by the object's address: from the kernel if it can
 * tell (bpf_get_kmem_cache(), since 6.13), else from the object's page. So a free counts for the cache that
 * the object came from, whatever call frees it, and whether or not its allocation was seen.
 */
#include "bpf/slab.bpf.h"

#include "bpf/slabratetop.h"

extern struct kmem_cache *bpf_get_kmem_cache(__u64 address) __weak __ksym;

/* Addresses of the kernel's variables of these names; 0: it has none. Set before the programs are loaded. */
const volatile __u64 page_offset_base_at = 0, vmemmap_base_at = 0;

/* Values for kernels without these variables: no KASLR and no five-level page tables. */
#define PAGE_OFFSET_FIXED 0xffff888000000000ull
#define VMEMMAP_FIXED     0xffffea0000000000ull
#define PAGE_SHIFT        12

SYS_TABLE(struct slabratetop_key, struct slabratetop_value)

/*
 * Live objects that are followed, by address, with the time of their allocation. The oldest entries are
 * replaced: then a reuse may be missed, but none is reported by mistake. With --hist all objects are
 * followed, and none is replaced: otherwise long-lived ones would be missing.
 */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1 << 16);
    __uint(key_size, sizeof(__u64));
    __uint(value_size, sizeof(__u64));
} followed SEC(".maps");

static __always_inline __u64 slot_bytes(__u64 cache)
{
    const struct kmem_cache *s = (const void *)cache;
    return cache ? BPF_CORE_READ(s, size) : 0;
}

static __always_inline struct slabratetop_value *row_of(__u64 cache)
{
    struct row_key row = {
        .key = {cache, cache ? (__u64)BPF_CORE_READ((const struct kmem_cache *)cache, name) : 0}};
    struct slabratetop_value *v = row_at(&row);
    if (v && UNLIKELY(!v->allocations && !v->frees) && cache) {
        v->name = slab_name_number(cache, SLABRATETOP_NAMES_FULL);
        v->slot_bytes = slot_bytes(cache);
    }
    return v;
}

/* One in so many, always the same. */
static __always_inline bool is_chosen(__u64 address)
{
    return !(address * 0x9e3779b97f4a7c15ull >> (64 - SLABRATETOP_FOLLOWED_SHIFT));
}

static __always_inline bool is_followed(__u64 address)
{
    return config.histograms || is_chosen(address);
}

/* True: it is followed already, so that its free had no event. Its life began now. */
static __always_inline bool follow(__u64 address)
{
    const __u64 now_ns = config.histograms ? bpf_ktime_get_ns() : 1;
    long error = bpf_map_update_elem(&followed, &address, &now_ns, BPF_NOEXIST);
    if (LIKELY(!error))
        return false;
    if (error == -KERNEL_EEXIST) {
        if (config.histograms)
            bpf_map_update_elem(&followed, &address, &now_ns, BPF_EXIST);
        return is_chosen(address);
    }
    count(SYS_LIVE_FULL);
    return false;
}

/* Since when it was followed; 0: it was not, or nobody asked. */
static __always_inline __u64 unfollow(__u64 address)
{
    const __u64 *since_ns = config.histograms ? bpf_map_lookup_elem(&followed, &address) : NULL;
    const __u64 began_ns = since_ns ? *since_ns : 0;
    bpf_map_delete_elem(&followed, &address);
    return began_ns;
}

static __always_inline bool is_slab(const struct page *page)
{
    if (bpf_core_enum_value_exists(enum pagetype, PGTY_slab)) /* since 6.11 */
        return BPF_CORE_READ(page, page_type) >> 24 == bpf_core_enum_value(enum pagetype, PGTY_slab);
    return BPF_CORE_READ((const struct page___before_6_11 *)page, flags) >>
               bpf_core_enum_value(enum pageflags, PG_slab) &
           1;
}

/* The cache of an object, read from its page; 0: none, it is of whole pages. */
static __always_inline __u64 cache_read(__u64 address)
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

/* By the kernel's answer where it gives one. */
static __always_inline __u64 cache_of(const struct slab_object *o, enum slab_way way)
{
    if (o->cache)
        return (__u64)o->cache;
    if (SLAB_NOTHING(o->address))
        return 0;
    return way == SLAB_BTF ? (__u64)bpf_get_kmem_cache(o->address) : cache_read(o->address);
}

static __always_inline int slab_allocated(void *ctx, enum slab_way way, const struct slab_object *o)
{
    bool again = false;
    if (SLAB_NOTHING(o->address))
        return 0;
    /* Whoever asks: an address that is left out here would seem to come again later. */
    if (runs() && is_followed(o->address))
        again = follow(o->address);
    if (!wanted())
        return 0;
    const __u64 cache = cache_of(o, way);
    struct slabratetop_value *v = row_of(cache);
    if (!v)
        return 0;
    v->allocations++;
    v->allocated_bytes += o->allocated_bytes ? o->allocated_bytes : slot_bytes(cache);
    if (UNLIKELY(again)) {
        v->reused++;
        count(SLABRATETOP_REUSED);
    }
    row_done(v);
    return 0;
}

static __always_inline int slab_freed(void *ctx, enum slab_way way, const struct slab_object *o)
{
    if (SLAB_NOTHING(o->address)) {
        if (wanted())
            count(SLABRATETOP_NULL_FREES);
        return 0;
    }
    const __u64 began_ns = is_followed(o->address) ? unfollow(o->address) : 0;
    if (!wanted())
        return 0;
    const __u64 cache = cache_of(o, way);
    struct slabratetop_value *v = row_of(cache);
    if (v) {
        v->frees++;
        v->freed_bytes += slot_bytes(cache);
        if (began_ns)
            row_measure(v, bpf_ktime_get_ns() - began_ns);
        row_done(v);
    }
    return 0;
}
