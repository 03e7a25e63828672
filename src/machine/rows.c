/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a tool: taken from the table that nobody writes to any more. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "machine/live.h"
#include "machine/sampled_rows.h"
#include "machine/samples.h"
#include "machine/session.h"

#define BATCH 512u

/*
 * Returns when every program that was running has ended: whoever changes a map of maps is made to wait for that by the kernel.
 * (membarrier(2) waits for the same, but not with one CPU, where a program may have been interrupted by us, nor with nohz_full.)
 */
static void wait_for_programs(struct sys_session *s, int table)
{
    LIBBPF_OPTS(bpf_map_create_opts, of, .inner_map_fd = (uint32_t)table);
    const uint32_t zero = 0;
    if (s->waits_fd < 0)
        s->waits_fd =
            bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "waits", sizeof(zero), sizeof(uint32_t), 1, &of);
    if (bpf_map_update_elem(s->waits_fd, &zero, &table, BPF_ANY))
        usleep(20000);
}

struct batch {
    char *keys, *values, *sum;
    size_t value_bytes; /* of one CPU, as the map lays them out */
    int cpus;
};

static void add_row(struct sys_session *s, struct table *t, struct batch *b, uint32_t i)
{
    const struct sys_tool *tool = s->tool;
    const char *value = b->values + (size_t)i * b->value_bytes * (size_t)b->cpus;
    _Alignas(8) char key[SYS_KEY_BYTES_MAX] = {0};
    const uint32_t before = t ? table_rows(t) : 0;
    memcpy(key, b->keys + (size_t)i * s->settings.part->key_bytes, s->settings.part->key_bytes);
    memset(b->sum, 0, tool->value_bytes);
    for (int c = 0; c < b->cpus; c++)
        tool->add(b->sum, value + (size_t)c * b->value_bytes);
    if (sys_loses(s))
        return;
    if (sampled_rows_are(s)) {
        sampled_rows_add(s, key, b->sum);
        return;
    }
    tool->row(s, t, key, b->sum);
    if (table_rows(t) > before)
        live_row(s, t, key);
}

/* Everything in the map, which is empty afterwards. 0 or -errno. */
static int drain(struct sys_session *s, int map, struct batch *b, struct table *t)
{
    uint32_t at = 0, n, more = 0;
    int error;
    do {
        n = BATCH;
        error = bpf_map_lookup_and_delete_batch(map, more ? &at : NULL, &at, b->keys, b->values, &n, NULL);
        if (error == -ENOENT || !error || error == -ENOSPC)
            for (uint32_t i = 0; i < n; i++)
                add_row(s, t, b, i);
        more = 1;
    } while (!error);
    return error == -ENOENT ? 0 : error;
}

static void batch_init(struct batch *b, const struct sys_session *s)
{
    int cpus = libbpf_num_possible_cpus();
    b->cpus = cpus > 0 ? cpus : 1;
    b->value_bytes = (s->tool->value_bytes + 7) & ~(size_t)7;
    b->keys = mem_array(BATCH, s->settings.part->key_bytes);
    b->values = mem_array(BATCH * (size_t)b->cpus, b->value_bytes);
    b->sum = mem_alloc(s->tool->value_bytes);
}

static void batch_release(struct batch *b)
{
    free(b->keys);
    free(b->values);
    free(b->sum);
}

/* Programs write to the other table from now on; returns the one that is nobody else's any more. */
static int turn_tables(struct sys_session *s)
{
    uint32_t was = __atomic_load_n(&s->state->active, __ATOMIC_RELAXED);
    int table = sys_map(s, was ? "table_1" : "table_0");
    __atomic_store_n(&s->state->active, !was, __ATOMIC_SEQ_CST);
    wait_for_programs(s, table);
    samples_read(s); /* what the rows speak of */
    return table;
}

int sys_take_rows(struct sys_session *s, struct table *t)
{
    struct batch b;
    batch_init(&b, s);
    uint64_t now = s->until_ns ? s->until_ns : sys_now_ns();
    s->rows_ns = now - s->since_ns;
    s->since_ns = now;
    int table = turn_tables(s);
    live_gather(s);
    if (s->tool->gather)
        s->tool->gather(s);
    int error = drain(s, table, &b, t);
    if (sampled_rows_are(s))
        sampled_rows_take(s, t);
    live_rest(s, t);
    if (s->tool->rest)
        s->tool->rest(s, t);
    batch_release(&b);
    return error;
}

void rows_gather(struct sys_session *s)
{
    uint32_t taken = __atomic_load_n(&s->state->samples, __ATOMIC_RELAXED);
    struct batch b;
    if (taken - s->gathered < s->settings.rows_max / 4)
        return;
    s->gathered = taken;
    batch_init(&b, s);
    drain(s, turn_tables(s), &b, NULL);
    batch_release(&b);
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
