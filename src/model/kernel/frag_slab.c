/* SPDX-License-Identifier: BSD-2-Clause */
/* What the slabs of a cache hold, and what shrinking it would free. */
#include "model/kernel/frag.h"

/* A CPU has two sheaves, and one of objects that wait for RCU; a node has at most so many full ones (mm/slub.c). */
#define SHEAVES_OF_CPU  3u
#define SHEAVES_OF_NODE 10u

static bool has_all(const struct memory_cache *c, uint32_t values)
{
    return (c->known & values) == values;
}
#define BIT(v) (UINT32_C(1) << (v))

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A product for bytes; its factors come from a file. */
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) || product > MEMORY_VALUE_MAX ? MEMORY_VALUE_MAX : product;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* In slabs that CPUs work on or have in lists. A slab comes into a CPU's list when an object of it is freed. */
static struct frag_range cpu_free_objects(const struct memory_cache *c)
{
    if (!has_all(c, BIT(CACHE_CPU_SLABS) | BIT(CACHE_PER_SLAB)))
        return (struct frag_range){.known = false};
    const uint64_t listed = memory_cache_has(c, CACHE_CPU_PARTIAL_SLABS) ? c->at[CACHE_CPU_PARTIAL_SLABS] : 0;
    const uint64_t high = times(c->at[CACHE_CPU_SLABS], c->at[CACHE_PER_SLAB]);
    return (struct frag_range){true, least(listed, high), high};
}

/* Free objects in sheaves. /sys tells how many fit into one, not how many there are. */
static struct frag_range sheaf_objects(const struct memory_cache *c, const struct memory_state *s)
{
    if (!memory_cache_has(c, CACHE_SHEAF)) /* a kernel without sheaves */
        return frag_exact(0);
    if (c->at[CACHE_SHEAF] && (!s->cpus || !s->nodes || !memory_cache_has(c, CACHE_USED)))
        return (struct frag_range){.known = false};
    const uint64_t sheaves = (uint64_t)s->cpus * SHEAVES_OF_CPU + (uint64_t)s->nodes * SHEAVES_OF_NODE;
    return (struct frag_range){
        true, 0, c->at[CACHE_SHEAF] ? least(times(c->at[CACHE_SHEAF], sheaves), c->at[CACHE_USED]) : 0};
}

/*
 * Of P partly used slabs with room for n objects each, of which U are in use, so many are empty:
 * at least P - U, as each other one has an object; at most P - U / (n - 1), rounded up, as none of the others is full.
 */
static struct frag_range empty_partial_slabs(const struct memory_cache *c, uint64_t fewer_used)
{
    const uint64_t slabs = c->at[CACHE_PARTIAL], used = c->at[CACHE_PARTIAL_USED], n = c->at[CACHE_PER_SLAB];
    const uint64_t still = less(used, fewer_used);
    const uint64_t kept = n > 1 ? (still + n - 2) / (n - 1) : still;
    return (struct frag_range){true, less(slabs, used), less(slabs, kept)};
}

/*
 * Shrinking flushes CPUs' slabs and sheaves, and frees every slab that has no object in use then. It frees no more than
 * this: the objects that remain in use need slabs.
 */
static struct frag_range shrink_slabs(const struct memory_cache *c, const struct memory_state *s)
{
    const struct frag_range cpu = cpu_free_objects(c), sheaves = sheaf_objects(c, s);
    if (!cpu.known || !sheaves.known ||
        !has_all(c, BIT(CACHE_PARTIAL) | BIT(CACHE_PARTIAL_USED) | BIT(CACHE_SLABS) | BIT(CACHE_USED)))
        return (struct frag_range){.known = false};
    const uint64_t n = c->at[CACHE_PER_SLAB];
    struct frag_range r = empty_partial_slabs(c, sheaves.high);
    r.high += c->at[CACHE_CPU_SLABS] + sheaves.high / n;
    const uint64_t used = less(c->at[CACHE_USED], cpu.high + sheaves.high);
    r.high = least(r.high, less(c->at[CACHE_SLABS], used / n + (used % n != 0)));
    r.low = least(r.low, r.high);
    return r;
}

static struct frag_range in_bytes(struct frag_range count, uint64_t each)
{
    return (struct frag_range){count.known, times(count.low, each), times(count.high, each)};
}

static void compute_parts(struct frag_cache *f, const struct memory_cache *c, uint64_t slab_bytes)
{
    const uint64_t stride = c->at[CACHE_STRIDE_BYTES], room = c->at[CACHE_ROOM];
    const uint64_t used = least(c->at[CACHE_USED], room), bytes = times(c->at[CACHE_SLABS], slab_bytes);
    const uint64_t slots = least(times(room, stride), bytes);
    f->smaller_slabs =
        memory_cache_has(c, CACHE_PER_SLAB) && room < times(c->at[CACHE_SLABS], c->at[CACHE_PER_SLAB]);
    f->at[FRAG_BYTES] = (struct frag_range){true, f->smaller_slabs ? slots : bytes, bytes};
    f->at[FRAG_TAILS] = (struct frag_range){true, f->smaller_slabs ? 0 : bytes - slots, bytes - slots};
    f->at[FRAG_FREE] = frag_exact(least(times(room - used, stride), slots));
    f->lost = (struct frag_range){true, f->at[FRAG_FREE].low + f->at[FRAG_TAILS].low,
                                  f->at[FRAG_FREE].high + f->at[FRAG_TAILS].high};
    if (!memory_cache_has(c, CACHE_OBJECT_BYTES) || c->at[CACHE_OBJECT_BYTES] > stride)
        return;
    const uint64_t held = slots - f->at[FRAG_FREE].high;
    f->at[FRAG_OBJECTS] = frag_exact(least(times(used, c->at[CACHE_OBJECT_BYTES]), held));
    f->at[FRAG_PADDING] = frag_exact(held - f->at[FRAG_OBJECTS].high);
    f->lost.low += f->at[FRAG_PADDING].low;
    f->lost.high += f->at[FRAG_PADDING].high;
}

void frag_cache_compute(struct frag_cache *f, const struct memory_cache *c, const struct memory_state *s)
{
    *f = (struct frag_cache){.of = c};
    const uint64_t slab_bytes =
        memory_cache_has(c, CACHE_ORDER) ? times(s->page_bytes, UINT64_C(1) << c->at[CACHE_ORDER]) : 0;
    const uint64_t stride = c->at[CACHE_STRIDE_BYTES];
    if (slab_bytes &&
        has_all(c, BIT(CACHE_SLABS) | BIT(CACHE_ROOM) | BIT(CACHE_USED) | BIT(CACHE_STRIDE_BYTES)))
        compute_parts(f, c, slab_bytes);
    if (memory_cache_has(c, CACHE_STRIDE_BYTES)) {
        f->at[FRAG_CPU_FREE] = in_bytes(cpu_free_objects(c), stride);
        f->at[FRAG_SHEAF_FREE] = in_bytes(sheaf_objects(c, s), stride);
    }
    if (slab_bytes)
        f->at[FRAG_SHRINK] = in_bytes(shrink_slabs(c, s), slab_bytes);
    if (has_all(c, BIT(CACHE_PARTIAL) | BIT(CACHE_PARTIAL_USED) | BIT(CACHE_PER_SLAB)) &&
        c->at[CACHE_PARTIAL])
        f->partial = (struct frag_range){true, c->at[CACHE_PARTIAL_USED],
                                         times(c->at[CACHE_PARTIAL], c->at[CACHE_PER_SLAB])};
}
