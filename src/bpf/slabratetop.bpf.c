// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `allium sys slabratetop`: the allocation rate of slab caches.
 *
 * The cache is found by the object's address (bpf/slab.bpf.h). So a free counts for the cache that the object
 * came from, whatever call frees it, and whether or not its allocation was seen.
 */
#include "bpf/slab.bpf.h"

#include "bpf/slabratetop.h"

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

static __always_inline struct slabratetop_value *row_of(__u64 cache)
{
    struct row_key row = {
        .key = {cache, cache ? (__u64)BPF_CORE_READ((const struct kmem_cache *)cache, name) : 0}};
    struct slabratetop_value *v = row_at(&row);
    if (v && UNLIKELY(!v->allocations && !v->frees) && cache) {
        v->name = slab_name_number(cache, SLABRATETOP_NAMES_FULL);
        v->slot_bytes = slab_slot_bytes(cache);
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
    int error = (int)bpf_map_update_elem(&followed, &address, &now_ns, BPF_NOEXIST);
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
    const __u64 cache = slab_cache_of(o, way);
    struct slabratetop_value *v = row_of(cache);
    if (!v)
        return 0;
    v->allocations++;
    v->allocated_bytes += o->allocated_bytes ? o->allocated_bytes : slab_slot_bytes(cache);
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
    const __u64 cache = slab_cache_of(o, way);
    struct slabratetop_value *v = row_of(cache);
    if (v) {
        v->frees++;
        v->freed_bytes += slab_slot_bytes(cache);
        if (began_ns)
            row_measure(v, bpf_ktime_get_ns() - began_ns);
        row_done(v);
    }
    return 0;
}
