/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a tool: taken from the table that nobody writes to any more. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/hash_map.h"
#include "base/sigsafe/clock_ns.h"
#include "base/vec.h"
#include "sys/live_objects.h"
#include "sys/resolver.h"
#include "sys/sampled_rows.h"
#include "sys/session.h"
#include "sys/stack_samples.h"

#define BATCH 512u

/*
 * Whoever changes a map of maps is made to wait for that by the kernel.
 * (membarrier(2) waits for the same, but not with one CPU, where a program may have been interrupted by us, nor with
 * nohz_full.)
 */
void rows_wait_for_programs(struct sys_session *s, int table)
{
    LIBBPF_OPTS(bpf_map_create_opts, of, .inner_map_fd = (uint32_t)table);
    const uint32_t zero = 0;
    if (s->waits_fd < 0)
        s->waits_fd =
            bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "waits", sizeof(zero), sizeof(uint32_t), 1, &of);
    if (bpf_map_update_elem(s->waits_fd, &zero, &table, BPF_ANY))
        usleep(20000);
}

/* What a table holds, by key: each CPU's row is added to the others of its key. */
struct gathered {
    struct map index;
    struct VEC(char *) rows; /* a sum, and behind it the key */
};

/* ---- sums: a tool's values, and behind them the tail as far as it is asked for ---- */

size_t rows_sum_bytes(const struct sys_session *s)
{
    const struct sys_config *c = &s->settings.config;
    return s->tool->value_bytes + (c->histograms ? sizeof(struct sys_row_tail)
                                   : c->cgroups  ? offsetof(struct sys_row_tail, histogram)
                                                 : offsetof(struct sys_row_tail, cgroup));
}

void rows_add(const struct sys_session *s, void *sum, const void *value)
{
    struct sys_row_tail *a = (void *)((char *)sum + s->tool->value_bytes);
    const struct sys_row_tail *v = (const void *)((const char *)value + s->tool->value_bytes);
    s->tool->add(sum, value);
    if (s->settings.config.cgroups)
        a->cgroup = v->cgroup ? v->cgroup : a->cgroup;
    for (int i = 0; s->settings.config.histograms && i < SYS_SLOTS; i++)
        a->histogram.slots[i] += v->histogram.slots[i];
}

static void add_histogram(const struct sys_session *s, struct table *t, const struct sys_histogram *h)
{
    uint64_t slots[SYS_SLOTS], any = 0;
    for (int i = 0; i < SYS_SLOTS; i++)
        any |= slots[i] = h->slots[i];
    if (any)
        table_histogram(t, s->tool->measure->column, slots, SYS_SLOTS);
}

bool rows_show(struct sys_session *s, struct table *t, const void *key, const void *sum)
{
    const struct sys_row_tail *tail = (const void *)((const char *)sum + s->tool->value_bytes);
    const uint32_t before = table_rows(t);
    s->tool->row(s, t, key, sum);
    if (table_rows(t) == before)
        return false;
    if (s->settings.config.cgroups)
        resolver_container(s, t, s->tool->container, tail->cgroup);
    if (s->settings.config.histograms)
        add_histogram(s, t, &tail->histogram);
    return true;
}

static void gathered_release(struct gathered *g)
{
    vec_each (char *, row, &g->rows)
        free(*row);
    vec_release(&g->rows);
    map_release(&g->index);
}

static void gathered_add(struct gathered *g, const struct sys_session *s, const char *key, const char *value)
{
    const size_t key_bytes = s->settings.part->key_bytes, sum_bytes = rows_sum_bytes(s);
    bool added;
    size_t at = map_put(&g->index, key, key_bytes, g->rows.len, &added);
    if (added) {
        char *row = mem_alloc(sum_bytes + key_bytes);
        memcpy(row + sum_bytes, key, key_bytes);
        *vec_push(&g->rows) = row;
    }
    rows_add(s, g->rows.at[at], value);
}

/* Everything in the map, which is empty afterwards. 0 or -errno. */
static int gather(struct sys_session *s, const struct bpf_map *m, struct gathered *g)
{
    const size_t key_bytes = bpf_map__key_size(m), value_bytes = bpf_map__value_size(m);
    const int map = bpf_map__fd(m);
    char *keys = mem_array(BATCH, key_bytes), *values = mem_array(BATCH, value_bytes);
    uint32_t at = 0, n, more = 0;
    int error;
    do {
        n = BATCH;
        error = bpf_map_lookup_and_delete_batch(map, more ? &at : NULL, &at, keys, values, &n, NULL);
        if (error == -ENOENT || !error || error == -ENOSPC)
            for (uint32_t i = 0; i < n; i++)
                gathered_add(g, s, keys + i * key_bytes + SYS_ROW_HEAD_BYTES, values + i * value_bytes);
        more = 1;
    } while (!error);
    free(keys);
    free(values);
    return error == -ENOENT ? 0 : error;
}

/* The rows of `all`, merged where tool->merge_key() makes their keys equal. */
static void merge_rows(struct sys_session *s, const struct gathered *all, struct gathered *merged)
{
    vec_each (char *, row, &all->rows) {
        _Alignas(8) char key[SYS_KEY_BYTES_MAX] = {0};
        memcpy(key, *row + rows_sum_bytes(s), s->settings.part->key_bytes);
        s->tool->merge_key(s, key);
        gathered_add(merged, s, key, *row);
    }
}

static void add_row(struct sys_session *s, struct table *t, const char *sum)
{
    _Alignas(8) char key[SYS_KEY_BYTES_MAX] = {0};
    memcpy(key, sum + rows_sum_bytes(s), s->settings.part->key_bytes);
    if (sys_loses(s))
        return;
    if (sampled_rows_are(s)) {
        sampled_rows_add(s, key, sum);
        return;
    }
    if (rows_show(s, t, key, sum))
        live_objects_row(s, t, key);
}

/* Rows of the table that programs do not write to any more. 0 or -errno. */
static int drain(struct sys_session *s, uint32_t table, struct table *t)
{
    struct gathered g = {0}, merged = {0};
    if (!s->state->has_rows[table])
        return 0;
    int error = gather(s, bpf_object__find_map_by_name(s->object, table ? "table_1" : "table_0"), &g);
    s->state->has_rows[table] = error != 0; /* what could not be taken is taken the next time */
    if (s->tool->merge_key)
        merge_rows(s, &g, &merged);
    vec_each (char *, row, s->tool->merge_key ? &merged.rows : &g.rows)
        add_row(s, t, *row);
    gathered_release(&merged);
    gathered_release(&g);
    return error;
}

/* Programs write to the other table from now on; returns the one that is nobody else's any more. */
static uint32_t turn_tables(struct sys_session *s)
{
    uint32_t was = __atomic_load_n(&s->state->active, __ATOMIC_RELAXED);
    __atomic_store_n(&s->state->active, !was, __ATOMIC_SEQ_CST);
    rows_wait_for_programs(s, sys_map(s, was ? "table_1" : "table_0"));
    stack_samples_read(s); /* what the rows speak of */
    return was;
}

int sys_take_rows(struct sys_session *s, struct table *t)
{
    uint64_t now = s->until_ns ? s->until_ns : clock_ns(CLOCK_MONOTONIC);
    s->rows_ns = now - s->since_ns;
    s->since_ns = now;
    const bool has_tables = s->tool->row != NULL;
    const uint32_t table = has_tables ? turn_tables(s) : 0;
    live_objects_gather(s);
    if (s->tool->gather)
        s->tool->gather(s);
    int error = has_tables ? drain(s, table, t) : 0;
    if (has_tables && sampled_rows_are(s))
        sampled_rows_take(s, t);
    live_objects_rest(s, t);
    if (s->tool->rest)
        s->tool->rest(s, t);
    return error;
}

void rows_gather(struct sys_session *s)
{
    uint32_t taken = __atomic_load_n(&s->state->samples, __ATOMIC_RELAXED);
    if (!s->tool->row || taken - s->gathered < s->settings.rows_max / 4)
        return;
    s->gathered = taken;
    drain(s, turn_tables(s), NULL);
}

void sys_each(struct sys_session *s, const char *map,
              void (*each)(void *arg, const void *key, const void *value), void *arg)
{
    const struct bpf_map *m = bpf_object__find_map_by_name(s->object, map);
    size_t key_bytes = bpf_map__key_size(m), value_bytes = bpf_map__value_size(m);
    char *keys = mem_array(BATCH, key_bytes), *values = mem_array(BATCH, value_bytes);
    uint32_t at = 0, n, more = 0;
    int error;
    do {
        n = BATCH;
        error = bpf_map_lookup_batch(bpf_map__fd(m), more ? &at : NULL, &at, keys, values, &n, NULL);
        if (!error || error == -ENOENT)
            for (uint32_t i = 0; i < n; i++)
                each(arg, keys + i * key_bytes, values + i * value_bytes);
        more = 1;
    } while (!error);
    free(keys);
    free(values);
}
