// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium sys kmem`: the kernel's own objects, by who asks for them. */
#include "bpf/slab.bpf.h"

#include "bpf/kmem.h"

SYS_TABLE(struct kmem_key, struct kmem_value)
SYS_LIVE(struct kmem_live)

struct cache_name {
    char text[KMEM_CACHE_NAME_BYTES];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __uint(key_size, sizeof(__u64));
    __uint(value_size, sizeof(struct cache_name));
} cache_names SEC(".maps");

/* By address of struct kmem_cache: how many of its objects were handed out twice without a free in between. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __uint(key_size, sizeof(__u64));
    __uint(value_size, sizeof(__u64));
} reused SEC(".maps");

static __always_inline void key_now(struct kmem_key *key, void *ctx, __u64 call_site)
{
    if (config.parts & KMEM_BY_SITE)
        key->call_site = call_site;
    if (config.parts & KMEM_BY_STACK) {
        key->kernel_stack = kernel_stack_now(ctx);
        key->user_stack = user_stack_now(ctx);
        if (config.stacks & SYS_STACK_USER)
            key->pid = current_ids() >> 32;
    }
    if (config.parts & KMEM_BY_PROCESS) {
        key->pid = current_ids() >> 32;
        bpf_get_current_comm(key->comm, sizeof(key->comm));
    }
}

static __attribute__((noinline)) int name_cache(__u64 cache)
{
    struct cache_name name = {0};
    if (!bpf_map_lookup_elem(&cache_names, &cache)) {
        const struct kmem_cache *s = (const void *)cache;
        bpf_probe_read_kernel_str(name.text, sizeof(name.text), BPF_CORE_READ(s, name));
        bpf_map_update_elem(&cache_names, &cache, &name, BPF_ANY);
    }
    return 0;
}

static __always_inline void cache_of_row(struct kmem_value *v, __u64 cache)
{
    if (LIKELY(v->cache == cache))
        return;
    if (v->cache)
        v->caches_differ = 1;
    v->cache = cache;
    name_cache(cache);
}

static __attribute__((noinline)) int count_reused(__u64 cache)
{
    __u64 one = 1, *n = bpf_map_lookup_elem(&reused, &cache);
    count(KMEM_REUSED);
    if (n)
        __sync_fetch_and_add(n, 1);
    else
        bpf_map_update_elem(&reused, &cache, &one, BPF_NOEXIST);
    return 0;
}

static __always_inline void follow(const struct kmem_key *key, const struct slab_object *o)
{
    struct kmem_live object = {.requested_bytes = o->requested_bytes,
                               .allocated_bytes = o->allocated_bytes,
                               .cache = (__u64)o->cache,
                               .time_ns = bpf_ktime_get_ns(),
                               .key = *key};
    long error = bpf_map_update_elem(&live, &o->address, &object, BPF_NOEXIST);
    if (UNLIKELY(error == -KERNEL_EEXIST)) {
        count_reused((__u64)o->cache);
        error = bpf_map_update_elem(&live, &o->address, &object, BPF_ANY);
    }
    if (UNLIKELY(error))
        count(SYS_LIVE_FULL);
}

static __always_inline void ask_cache(struct slab_object *o, enum slab_way way)
{
    const struct kmem_cache *cache = o->cache;
    o->requested_bytes = way == SLAB_BTF ? cache->object_size : BPF_CORE_READ(cache, object_size);
    o->allocated_bytes = way == SLAB_BTF ? cache->size : BPF_CORE_READ(cache, size);
}

static __always_inline int slab_allocated(void *ctx, enum slab_way way, const struct slab_object *told)
{
    struct kmem_key key = {0};
    struct slab_object o = *told;
    if (!o.address || !wanted())
        return 0;
    if (o.cache)
        ask_cache(&o, way);
    key_now(&key, ctx, o.call_site);
    struct kmem_value *v = row_for(&key);
    if (!v)
        return 0;
    v->allocations++;
    v->requested_bytes += o.requested_bytes;
    v->allocated_bytes += o.allocated_bytes;
    v->gfp |= o.gfp;
    if (config.stacks & SYS_STACK_USER)
        v->time_ns = bpf_ktime_get_ns();
    if (o.cache)
        cache_of_row(v, (__u64)o.cache);
    if (follow_live)
        follow(&key, &o);
    return 0;
}

static __always_inline int slab_freed(void *ctx, enum slab_way way, const struct slab_object *o)
{
    struct kmem_key key = {0};
    if (SLAB_NOTHING(o->address)) {
        if (wanted())
            count(KMEM_NULL_FREES);
        return 0;
    }
    /* Whoever frees it: it was followed because its allocation was wanted. */
    if (follow_live && runs() && bpf_map_delete_elem(&live, &o->address) && !config.filters)
        count(KMEM_FREED_BEFORE); /* with filters it may be any that was not asked for */
    if (!wanted())
        return 0;
    key_now(&key, ctx, o->call_site);
    struct kmem_value *v = row_for(&key);
    if (!v)
        return 0;
    v->frees++;
    if (config.stacks & SYS_STACK_USER)
        v->time_ns = bpf_ktime_get_ns();
    return 0;
}
