/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/table/table_merge.h"

#include <string.h>

#include "base/hash_map.h"

#define OTHERS " and others"

static bool has_others(const char *text, size_t *name_len)
{
    size_t len = strlen(text), end = strlen(OTHERS);
    bool has = len >= end && !strcmp(text + len - end, OTHERS);
    *name_len = has ? len - end : len;
    return has;
}

static void merge_text(struct table_value *into, const struct table_value *v)
{
    size_t a, b;
    if (!into->known) {
        *into = (struct table_value){.known = true, .text = mem_strdup(v->text)};
        return;
    }
    bool had = has_others(into->text, &a), has = has_others(v->text, &b);
    if (had || (!has && a == b && !memcmp(into->text, v->text, a)))
        return;
    struct buf name = BUF_INIT;
    buf_printf(&name, "%s" OTHERS, into->text);
    free(into->text);
    into->text = buf_detach(&name);
}

static void merge_histogram(struct table_value *into, const struct table_value *v)
{
    if (!into->known)
        *into = (struct table_value){.known = true, .slots = mem_array(TABLE_SLOTS, sizeof(uint64_t))};
    for (uint32_t i = 0; i < TABLE_SLOTS; i++)
        into->slots[i] += v->slots[i];
}

static void merge_value(const struct table_column *c, struct table_value *into, const struct table_value *v)
{
    if (!v->known)
        return;
    switch (c->type) {
    case TABLE_TEXT:
        merge_text(into, v);
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
    /* by text: the row that the others of this text are added to, as numbered after the merge */
    struct map rows;
    uint32_t column, kept;
};

/* Returns whether the row is the first one with its text. If it is not, adds it to the first one. */
static bool keeps(const struct table *t, uint32_t row, void *arg)
{
    struct merging *m = arg;
    const struct table_value *key = table_at(t, row, m->column);
    const char *text = key->known ? key->text : "";
    bool is_new;
    size_t bytes = strlen(text) + key->known; /* with the NUL, so that "" differs from an unknown text */
    size_t first = map_put(&m->rows, text, bytes, m->kept, &is_new);
    m->kept += is_new;
    if (is_new)
        return true;
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (i != m->column)
            merge_value(&t->columns[i], &t->values.at[first * t->n_columns + i], table_at(t, row, i));
    return false;
}

void table_merge(struct table *t, uint32_t column)
{
    struct merging m = {.column = column};
    table_keep(t, keeps, &m);
    map_release(&m.rows);
}
