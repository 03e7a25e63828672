/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/table/table_merge.h"

#include <string.h>

#include "base/hash_map.h"
#include "model/profile/estimate.h"

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

static void take_text(struct table_value *into, const struct table_value *v, bool larger)
{
    if (!larger)
        return;
    if (into->known)
        free(into->text);
    *into = (struct table_value){.known = v->known, .text = v->known ? mem_strdup(v->text) : NULL};
}

static bool has_word(const char *text, const char *word, size_t len, char between)
{
    for (; *text; text += *text == between) {
        size_t have = strcspn(text, (char[]){between, '\0'});
        if (have == len && !memcmp(text, word, len))
            return true;
        text += have;
    }
    return false;
}

static void merge_words(struct table_value *into, const struct table_value *v, char between)
{
    struct buf all = BUF_INIT;
    buf_addstr(&all, into->known ? into->text : "");
    for (const char *word = v->text; *word; word += *word == between) {
        size_t len = strcspn(word, (char[]){between, '\0'});
        if (!has_word(buf_str(&all), word, len, between)) {
            if (all.len)
                buf_addch(&all, between);
            buf_add(&all, word, len);
        }
        word += len;
    }
    if (into->known)
        free(into->text);
    *into = (struct table_value){.known = true, .text = mem_strdup(buf_str(&all))};
    buf_release(&all);
}

static void merge_whole(const struct table_column *c, struct table_value *into, const struct table_value *v)
{
    const uint64_t had = into->known ? into->whole : 0;
    into->whole = !c->merge_largest ? had + v->whole : v->whole > had ? v->whole : had;
    into->least = (into->known && into->least) || v->least;
    into->known = true;
}

static void merge_histogram(struct table_value *into, const struct table_value *v)
{
    if (!into->known)
        *into = (struct table_value){.known = true, .slots = mem_array(TABLE_SLOTS, sizeof(uint64_t))};
    for (uint32_t i = 0; i < TABLE_SLOTS; i++)
        into->slots[i] += v->slots[i];
}

static void merge_estimate(struct table_value *into, const struct table_value *v)
{
    if (!into->known) {
        *into = (struct table_value){.known = true, .estimate = mem_alloc(sizeof(*into->estimate))};
        *into->estimate = (struct estimate){.samples = 0};
    }
    estimate_merge(into->estimate, v->estimate);
}

/* `i`: the column. */
static void merge_value(struct table *t, uint32_t i, uint32_t row, const struct table_value *v, bool larger)
{
    const struct table_column *c = &t->columns[i];
    struct table_value *into = &t->values.at[(size_t)row * t->n_columns + i];
    switch (c->type) {
    case TABLE_TEXT:
        if (c->merge_largest)
            take_text(into, v, larger);
        else if (v->known && c->merge_words)
            merge_words(into, v, c->merge_words);
        else if (v->known)
            merge_text(into, v, larger);
        break;
    case TABLE_WHOLE:
        if (v->known)
            merge_whole(c, into, v);
        break;
    case TABLE_SIGNED:
        if (v->known)
            *into = (struct table_value){
                .known = true, .negative_too = (into->known ? into->negative_too : 0) + v->negative_too};
        break;
    case TABLE_HISTOGRAM:
        if (v->known)
            merge_histogram(into, v);
        break;
    case TABLE_ESTIMATE:
        if (v->known)
            merge_estimate(into, v);
        break;
    default:
        table_cell(t, row, i);
        break;
    }
}

struct merging {
    /* by values: the row that the others of these values are added to, as numbered after the merge */
    struct map rows;
    struct VEC(double) largest; /* of each of those rows: the largest weight that was merged into it */
    struct table *table;
    uint64_t columns;
    uint32_t weight;
};

/* The values by which rows are merged, as bytes: an unknown text differs from "". */
static void add_key(struct buf *key, const struct table *t, uint32_t row, uint64_t columns)
{
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct table_value *v = table_at(t, row, i);
        if (!(columns >> i & 1))
            continue;
        if (v->known && t->columns[i].type == TABLE_WHOLE)
            buf_add(key, &v->whole, sizeof(v->whole));
        else if (v->known)
            buf_add(key, v->text, strlen(v->text));
        buf_add(key, v->known ? "\0k" : "\0u", 2);
    }
}

/* Returns whether the row is the first one with its values. If it is not, adds it to the first one. */
static bool keeps(const struct table *t, uint32_t row, void *arg)
{
    struct merging *m = arg;
    const double number = table_number(t, row, m->weight);
    const double weighs = number > 0 ? number : 0;
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
            merge_value(m->table, i, (uint32_t)first, table_at(t, row, i), larger);
    if (larger)
        m->largest.at[first] = weighs;
    return false;
}

void table_merge(struct table *t, uint64_t columns, uint32_t weight)
{
    struct merging m = {.table = t, .columns = columns, .weight = weight};
    table_keep(t, keeps, &m);
    vec_release(&m.largest);
    map_release(&m.rows);
}
