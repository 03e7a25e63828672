/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/memleak/memleak_kernel_sums.h"

#include <unistd.h>

#include "base/hash_map.h"
#include "base/vec.h"
#include "model/profile/rollup.h"

struct memleak_sums {
    uint64_t period_bytes, older_than_ns;
    struct series *series;
    struct map rows; /* by key */
    struct VEC(uint64_t) unseen_frees;
};

struct memleak_sums *memleak_sums_new(uint64_t period_bytes, uint64_t older_than_ns)
{
    struct memleak_sums *m = mem_alloc(sizeof(*m));
    m->period_bytes = period_bytes;
    m->older_than_ns = older_than_ns;
    m->series = series_new();
    return m;
}

void memleak_sums_free(struct memleak_sums *m)
{
    if (!m)
        return;
    series_free(m->series);
    map_release(&m->rows);
    vec_release(&m->unseen_frees);
    free(m);
}

/* At the time of the report. The object may have been allocated after that. */
static uint64_t age_of(const struct sys_session *s, const struct memleak_kernel_live *object)
{
    return s->since_ns > object->time_ns ? s->since_ns - object->time_ns : 0;
}

bool memleak_sums_count(const struct memleak_sums *m, const struct sys_session *s,
                        const struct memleak_kernel_live *object)
{
    return age_of(s, object) >= m->older_than_ns;
}

/* What the object holds now: of a block that was split, a part. */
static uint64_t held_bytes(const struct memleak_kernel_live *object)
{
    if (object->key.kind == MEMLEAK_KERNEL_SLAB)
        return object->bytes;
    return (uint64_t)sysconf(_SC_PAGESIZE) << (object->order & 15);
}

/* The period at which an object of the bytes that are held would have had the same chance to be sampled. */
static uint64_t period_of(const struct memleak_sums *m, const struct memleak_kernel_live *object,
                          uint64_t held)
{
    if (m->period_bytes <= 1 || held >= object->bytes)
        return m->period_bytes;
    const uint64_t period = m->period_bytes * held / object->bytes;
    return period ? period : 1;
}

/* Misra and Gries with one counter: a cache that has more than half of the bytes is left at the end. */
static void vote_for_cache(struct memleak_sum *sum, uint32_t cache, double bytes)
{
    sum->other_caches = sum->other_caches || (sum->cache && sum->cache != cache);
    if (sum->cache == cache) {
        sum->cache_lead_bytes += bytes;
    } else if (bytes > sum->cache_lead_bytes) {
        sum->cache = cache;
        sum->cache_lead_bytes = bytes - sum->cache_lead_bytes;
    } else {
        sum->cache_lead_bytes -= bytes;
    }
}

/* An address is used again and again: an object is identified by its address and its time. */
static uint64_t serial_of(uint64_t address, const struct memleak_kernel_live *object)
{
    uint64_t serial = address ^ object->time_ns * 0x9e3779b97f4a7c15u;
    return serial ^ serial >> 29;
}

void memleak_sums_add(struct memleak_sums *m, const struct sys_session *s, const void *key,
                      struct memleak_sum *sum, uint64_t address, const struct memleak_kernel_live *object)
{
    const uint64_t held = held_bytes(object), age_ns = age_of(s, object);
    const uint64_t period = period_of(m, object, held);
    const double weight = rollup_weight(held, period);
    const struct estimate_cell cell = {.samples = 1,
                                       .seen = (double)held,
                                       .bytes = (double)held * weight,
                                       .count = weight,
                                       .period = (double)period};
    uint32_t slot = table_slot(age_ns);
    estimate_add_cell(&sum->bytes, &sum->objects, &cell);
    if (!sum->oldest_ns || object->time_ns < sum->oldest_ns)
        sum->oldest_ns = object->time_ns;
    if (object->time_ns > sum->newest_ns)
        sum->newest_ns = object->time_ns;
    sum->ages[slot < SYS_SLOTS ? slot : SYS_SLOTS - 1] += weight;
    if (object->key.cache)
        vote_for_cache(sum, object->key.cache, cell.bytes);
    if (!sum->series_stack)
        sum->series_stack = series_stack_of(m->series, key, s->settings.part->key_bytes) + 1;
    series_see(m->series, &(struct series_sample){.serial = serial_of(address, object),
                                                  .arrived_ns = object->time_ns + m->older_than_ns,
                                                  .size_bytes = held,
                                                  .period_bytes = period,
                                                  .stack = sum->series_stack - 1});
}

void memleak_sums_end(struct memleak_sums *m, const struct sys_session *s)
{
    series_end_snapshot(m->series, s->since_ns);
}

struct growth memleak_sums_growth(const struct memleak_sums *m, const struct memleak_sum *sum)
{
    return growth_of(m->series, sum->series_stack - 1);
}

void memleak_sums_add_unseen(struct memleak_sums *m, const struct sys_session *s, const void *key,
                             uint64_t frees)
{
    bool added;
    size_t at = map_put(&m->rows, key, s->settings.part->key_bytes, m->unseen_frees.len, &added);
    if (added)
        *vec_push(&m->unseen_frees) = 0;
    m->unseen_frees.at[at] += frees;
}

uint64_t memleak_sums_unseen(const struct memleak_sums *m, const struct sys_session *s, const void *key)
{
    size_t at = map_get(&m->rows, key, s->settings.part->key_bytes);
    return at == MAP_NONE ? 0 : m->unseen_frees.at[at];
}
