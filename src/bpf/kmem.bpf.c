// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium sys kmem`: objects of the kernel, by the code that allocates them. */
#include "bpf/slab.bpf.h"

#include "bpf/kmem.h"

SYS_TABLE(struct kmem_key, struct kmem_value)
SYS_LIVE(struct kmem_live)

/* With --frees: rows by stack also count frees, which takes a stack of each. */
const volatile bool free_stacks = false;

static __always_inline void key_now(struct kmem_key *key, void *ctx, const struct slab_object *o, __u64 cache)
{
    if (config.parts & KMEM_TELL_CACHES)
        key->cache = cache;
    if (config.parts & KMEM_BY_SITE)
        key->call_site = o->call_site;
    if (config.parts & KMEM_BY_STACK) {
        key->kernel_stack = kernel_stack_now(ctx);
        key->user_stack = user_stack_now(ctx);
        if (config.stacks & SYS_STACK_USER)
            key->pid = current_ids() >> 32;
    }
    if (config.parts & KMEM_BY_PROCESS)
        key->pid = current_ids() >> 32;
    if (config.parts & (KMEM_BY_PROCESS | KMEM_BY_COMM))
        comm_now(key->comm);
}

static __attribute__((noinline)) int name_row(struct kmem_value *v, __u64 cache)
{
    __u32 number = cache ? slab_name_number(cache, KMEM_NAMES_FULL) : KMEM_PAGES, had = v->name;
    bool other = had && (had & ~KMEM_AND_OTHERS) != number;
    if (!number) /* no room for one more name */
        number = had;
    v->name = number | (had & KMEM_AND_OTHERS) | (other ? KMEM_AND_OTHERS : 0);
    return 0;
}

/*
 * A row's objects are all of one cache, known by its address. The cache may be destroyed and another one made at the
 * same address, so the address of its name is compared at each event. The events of kmalloc and kfree do not tell the
 * cache: its name is not compared, since kmalloc's caches are never destroyed. Events by name never tell the cache, so
 * with them the name is compared for all objects.
 */
static __always_inline void cache_of_row(struct kmem_value *v, const struct slab_object *o, __u64 cache,
                                         enum slab_way way)
{
    const struct kmem_cache *told = o->cache;
    __u64 name_address = v->name_address;
    if (!(config.parts & KMEM_TELL_CACHES))
        return;
    if (way == SLAB_NAMED && cache)
        told = (const struct kmem_cache *)cache;
    if (told)
        name_address = way == SLAB_BTF ? (__u64)told->name : (__u64)BPF_CORE_READ(told, name);
    if (LIKELY(v->name && v->name_address == name_address))
        return;
    v->name_address = name_address;
    name_row(v, cache);
}

static __always_inline void follow(const struct kmem_key *key, const struct slab_object *o, __u32 name)
{
    struct kmem_live object = {.requested_bytes = o->requested_bytes,
                               .allocated_bytes = o->allocated_bytes,
                               .time_ns = bpf_ktime_get_ns(),
                               .name = name & ~KMEM_AND_OTHERS,
                               .key = *key};
    int error = (int)bpf_map_update_elem(&live, &o->address, &object, BPF_NOEXIST);
    if (UNLIKELY(error == -KERNEL_EEXIST)) {
        count(KMEM_REUSED);
        error = (int)bpf_map_update_elem(&live, &o->address, &object, BPF_ANY);
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
    struct row_key row = {0};
    struct slab_object o = *told;
    if (!o.address || !wanted())
        return 0;
    if (o.cache)
        ask_cache(&o, way);
    const __u64 cache = config.parts & KMEM_TELL_CACHES ? slab_cache_of(&o, way) : 0;
    key_now(&row.key, ctx, &o, cache);
    struct kmem_value *v = row_at(&row);
    if (!v)
        return 0;
    v->allocations++;
    v->requested_bytes += o.requested_bytes;
    v->allocated_bytes += o.allocated_bytes;
    v->gfp |= o.gfp;
    row_measure(v, o.requested_bytes);
    if (config.stacks & SYS_STACK_USER)
        v->time_ns = bpf_ktime_get_ns();
    cache_of_row(v, &o, cache, way);
    const __u32 name = v->name;
    row_done(v);
    if (follow_live)
        follow(&row.key, &o, name);
    return 0;
}

static __always_inline void freed(struct kmem_value *v, const struct slab_object *o, __u64 cache,
                                  enum slab_way way)
{
    const struct kmem_cache *told = o->cache;
    v->frees++;
    if (told)
        v->freed_bytes += way == SLAB_BTF ? told->size : BPF_CORE_READ(told, size);
    else if (cache)
        v->freed_bytes += slab_slot_bytes(cache);
    else
        v->frees_of_pages++;
    if (config.stacks & SYS_STACK_USER)
        v->time_ns = bpf_ktime_get_ns();
    cache_of_row(v, o, cache, way);
}

static __always_inline int slab_freed(void *ctx, enum slab_way way, const struct slab_object *o)
{
    struct row_key row = {0};
    if (SLAB_NOTHING(o->address)) {
        if (wanted())
            count(KMEM_NULL_FREES);
        return 0;
    }
    /* Whoever frees it: it was followed because its allocation was wanted. */
    if (follow_live && runs() && bpf_map_delete_elem(&live, &o->address) && !config.filters)
        count(KMEM_FREED_BEFORE); /* with filters it may be any that was not asked for */
    if ((config.parts & KMEM_BY_STACK && !free_stacks) || !wanted())
        return 0;
    const __u64 cache = slab_cache_of(o, way);
    key_now(&row.key, ctx, o, cache);
    struct kmem_value *v = row_at(&row);
    if (!v)
        return 0;
    freed(v, o, cache, way);
    row_done(v);
    return 0;
}
