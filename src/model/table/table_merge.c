/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/table/table_merge.h"

#include <string.h>

#include "base/hash_map.h"

size_t table_merge_name_len(const char *text)
{
    const size_t len = strlen(text), end = strlen(TABLE_MERGE_OTHERS);
    return len >= end && !strcmp(text + len - end, TABLE_MERGE_OTHERS) ? len - end : len;
}

/* `larger`: the row of `v` has a larger weight than any that was merged into this one. */
static void merge_text(struct table_value *into, const struct table_value *v, bool larger)
{
    if (!into->known) {
        *into = (struct table_value){.known = true, .text = mem_strdup(v->text)};
        return;
    }
    const size_t had = table_merge_name_len(into->text), have = table_merge_name_len(v->text);
    const bool others =
        into->text[had] || v->text[have] || had != have || memcmp(into->text, v->text, had) != 0;
    struct buf name = BUF_INIT;
    buf_add(&name, larger ? v->text : into->text, larger ? have : had);
    buf_addstr(&name, others ? TABLE_MERGE_OTHERS : "");
    free(into->text);
    into->text = mem_strdup(buf_str(&name));
    buf_release(&name);
}

static void merge_histogram(struct table_value *into, const struct table_value *v)
{
    if (!into->known)
        *into = (struct table_value){.known = true, .slots = mem_array(TABLE_SLOTS, sizeof(uint64_t))};
    for (uint32_t i = 0; i < TABLE_SLOTS; i++)
        into->slots[i] += v->slots[i];
}

static void merge_value(const struct table_column *c, struct table_value *into, const struct table_value *v,
                        bool larger)
{
    if (!v->known)
        return;
    switch (c->type) {
    case TABLE_TEXT:
        merge_text(into, v, larger);
        break;
    case TABLE_WHOLE:
        into->whole = (into->known ? into->whole : 0) + v->whole;
        into->least = (into->known && into->least) || v->least;
        into->known = true;
        break;
    case TABLE_SIGNED:
        into->negative_too = (into->known ? into->negative_too : 0) + v->negative_too;
        into->known = true;
        break;
    case TABLE_HISTOGRAM:
        merge_histogram(into, v);
        break;
    default:
        break;
    }
}

struct merging {
    /* by texts: the row that the others of these texts are added to, as numbered after the merge */
    struct map rows;
    struct VEC(uint64_t) largest; /* of each of those rows: the largest weight that was merged into it */
    uint64_t columns;
    uint32_t weight;
};

/* The texts by which rows are merged, as bytes: unknown texts differ from "". */
static void add_key(struct buf *key, const struct table *t, uint32_t row, uint64_t columns)
{
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct table_value *v = table_at(t, row, i);
        if (!(columns >> i & 1))
            continue;
        if (v->known)
            buf_add(key, v->text, strlen(v->text));
        buf_add(key, v->known ? "\0k" : "\0u", 2);
    }
}

/* Returns whether the row is the first one with its texts. If it is not, adds it to the first one. */
static bool keeps(const struct table *t, uint32_t row, void *arg)
{
    struct merging *m = arg;
    const struct table_value *weight = table_at(t, row, m->weight);
    const uint64_t weighs = weight->known ? weight->whole : 0;
    struct buf key = BUF_INIT;
    bool is_new;
    add_key(&key, t, row, m->columns);
    size_t first = map_put(&m->rows, key.data, key.len, m->largest.len, &is_new);
    buf_release(&key);
    if (is_new) {
        *vec_push(&m->largest) = weighs;
        return true;
    }
    const bool larger = weighs > m->largest.at[first];
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (!(m->columns >> i & 1))
            merge_value(&t->columns[i], &t->values.at[first * t->n_columns + i], table_at(t, row, i), larger);
    if (larger)
        m->largest.at[first] = weighs;
    return false;
}

void table_merge(struct table *t, uint64_t columns, uint32_t weight)
{
    struct merging m = {.columns = columns, .weight = weight};
    table_keep(t, keeps, &m);
    vec_release(&m.largest);
    map_release(&m.rows);
}
