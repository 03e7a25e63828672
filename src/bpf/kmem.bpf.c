// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium sys kmem`: the kernel's own objects, by who asks for them. */
#include "bpf/sys.bpf.h"

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

struct request {
    __u64 call_site, object;
    __u64 requested_bytes, allocated_bytes;
    __u64 cache;
    __u32 gfp;
};

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

static __always_inline void follow(const struct kmem_key *key, const struct request *r)
{
    struct kmem_live object = {.requested_bytes = r->requested_bytes,
                               .allocated_bytes = r->allocated_bytes,
                               .cache = r->cache,
                               .time_ns = bpf_ktime_get_ns(),
                               .key = *key};
    long error = bpf_map_update_elem(&live, &r->object, &object, BPF_NOEXIST);
    if (UNLIKELY(error == -KERNEL_EEXIST)) {
        count_reused(r->cache);
        error = bpf_map_update_elem(&live, &r->object, &object, BPF_ANY);
    }
    if (UNLIKELY(error))
        count(SYS_LIVE_FULL);
}

static __always_inline int allocated(void *ctx, const struct request *r)
{
    struct kmem_key key = {0};
    if (!r->object || !wanted())
        return 0;
    key_now(&key, ctx, r->call_site);
    struct kmem_value *v = row_for(&key);
    if (!v)
        return 0;
    v->allocations++;
    v->requested_bytes += r->requested_bytes;
    v->allocated_bytes += r->allocated_bytes;
    v->gfp |= r->gfp;
    if (config.stacks & SYS_STACK_USER)
        v->time_ns = bpf_ktime_get_ns();
    if (r->cache)
        cache_of_row(v, r->cache);
    if (follow_live)
        follow(&key, r);
    return 0;
}

static __always_inline int freed(void *ctx, __u64 call_site, __u64 object)
{
    struct kmem_key key = {0};
    if (object <= 16) { /* kmalloc() of 0 bytes gives 16, and has no event */
        if (runs())
            count(KMEM_NULL_FREES);
        return 0;
    }
    /* Whoever frees it: it was followed because its allocation was wanted. */
    if (follow_live && runs() && bpf_map_delete_elem(&live, &object))
        count(KMEM_FREED_BEFORE);
    if (!wanted())
        return 0;
    key_now(&key, ctx, call_site);
    struct kmem_value *v = row_for(&key);
    if (!v)
        return 0;
    v->frees++;
    if (config.stacks & SYS_STACK_USER)
        v->time_ns = bpf_ktime_get_ns();
    return 0;
}

#define ALLOCATED(...)                                                                                       \
    struct request r = {__VA_ARGS__};                                                                        \
    return allocated(ctx, &r)

/* By position, as kernels since 6.1 have them. */
#define KMALLOC(name, section)                                                                               \
    SEC(section)                                                                                             \
    int BPF_PROG(name, __u64 call_site, __u64 ptr, __u64 bytes_req, __u64 bytes_alloc, __u32 gfp)            \
    {                                                                                                        \
        ALLOCATED(call_site, ptr, bytes_req, bytes_alloc, 0, gfp);                                           \
    }
#define CACHE_ALLOC(name, section)                                                                           \
    SEC(section) int BPF_PROG(name, __u64 call_site, __u64 ptr, const struct kmem_cache *s, __u32 gfp)       \
    {                                                                                                        \
        ALLOCATED(call_site, ptr, READ(s, object_size), READ(s, size), (__u64)s, gfp);                       \
    }
#define KFREE(name, section)                                                                                 \
    SEC(section) int BPF_PROG(name, __u64 call_site, __u64 ptr)                                              \
    {                                                                                                        \
        return freed(ctx, call_site, ptr);                                                                   \
    }

#define READ(s, member) ((s)->member)
KMALLOC(btf_kmalloc, "tp_btf/kmalloc")
CACHE_ALLOC(btf_cache_alloc, "tp_btf/kmem_cache_alloc")
KFREE(btf_kfree, "tp_btf/kfree")
KFREE(btf_cache_free, "tp_btf/kmem_cache_free")
#undef READ
#define READ(s, member) BPF_CORE_READ(s, member)
KMALLOC(raw_kmalloc, "raw_tp/kmalloc")
CACHE_ALLOC(raw_cache_alloc, "raw_tp/kmem_cache_alloc")
KFREE(raw_kfree, "raw_tp/kfree")
KFREE(raw_cache_free, "raw_tp/kmem_cache_free")

/* By name. */
SEC("tp/kmem/kmalloc") int tp_kmalloc(struct trace_event_raw_kmalloc *ctx)
{
    if (!bpf_core_type_exists(struct trace_event_raw_kmalloc)) {
        struct trace_event_raw_kmem_alloc *old = (void *)ctx;
        ALLOCATED(old->call_site, (__u64)old->ptr, old->bytes_req, old->bytes_alloc, 0, old->gfp_flags);
    }
    ALLOCATED(ctx->call_site, (__u64)ctx->ptr, ctx->bytes_req, ctx->bytes_alloc, 0, ctx->gfp_flags);
}

SEC("tp/kmem/kmem_cache_alloc") int tp_cache_alloc(struct trace_event_raw_kmem_cache_alloc *ctx)
{
    if (!bpf_core_type_exists(struct trace_event_raw_kmem_cache_alloc)) {
        struct trace_event_raw_kmem_alloc *old = (void *)ctx;
        ALLOCATED(old->call_site, (__u64)old->ptr, old->bytes_req, old->bytes_alloc, 0, old->gfp_flags);
    }
    ALLOCATED(ctx->call_site, (__u64)ctx->ptr, ctx->bytes_req, ctx->bytes_alloc, 0, ctx->gfp_flags);
}

/* Before 6.1. */
SEC("tp/kmem/kmalloc_node") int tp_kmalloc_node(struct trace_event_raw_kmem_alloc_node *ctx)
{
    ALLOCATED(ctx->call_site, (__u64)ctx->ptr, ctx->bytes_req, ctx->bytes_alloc, 0, ctx->gfp_flags);
}

SEC("tp/kmem/kmem_cache_alloc_node") int tp_cache_alloc_node(struct trace_event_raw_kmem_alloc_node *ctx)
{
    ALLOCATED(ctx->call_site, (__u64)ctx->ptr, ctx->bytes_req, ctx->bytes_alloc, 0, ctx->gfp_flags);
}

SEC("tp/kmem/kfree") int tp_kfree(struct trace_event_raw_kfree *ctx)
{
    return freed(ctx, ctx->call_site, (__u64)ctx->ptr);
}

SEC("tp/kmem/kmem_cache_free") int tp_cache_free(struct trace_event_raw_kmem_cache_free *ctx)
{
    return freed(ctx, ctx->call_site, (__u64)ctx->ptr);
}
