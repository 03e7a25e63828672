/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/table.h"

#include <assert.h>

struct table *table_new(const char *name, uint32_t version, const struct table_column *columns,
                        uint32_t n_columns)
{
    struct table *t = mem_alloc(sizeof(*t));
    *t = (struct table){.name = name, .version = version, .columns = columns, .n_columns = n_columns};
    return t;
}

/* Frees what a value owns, and makes it one that is not known. */
static void clear(const struct table_column *c, struct table_value *v)
{
    if (v->known && c->type == TABLE_TEXT)
        free(v->text);
    if (v->known && c->type == TABLE_ESTIMATE)
        free(v->estimate);
    v->known = false;
}

void table_free(struct table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->values.len; i++)
        clear(&t->columns[i % t->n_columns], &t->values.at[i]);
    vec_release(&t->values);
    free(t);
}

void table_row(struct table *t)
{
    for (uint32_t i = 0; i < t->n_columns; i++)
        vec_push(&t->values)->known = false;
}

uint32_t table_rows(const struct table *t)
{
    return t->n_columns ? (uint32_t)(t->values.len / t->n_columns) : 0;
}

/* The cell of the last row, empty. */
static struct table_value *cell(struct table *t, uint32_t column, enum table_type type)
{
    assert(column < t->n_columns && t->values.len >= t->n_columns);
    const struct table_column *c = &t->columns[column];
    assert(c->type == type || (c->type == TABLE_ADDRESS && type == TABLE_WHOLE));
    struct table_value *v = &t->values.at[t->values.len - t->n_columns + column];
    clear(c, v);
    return v;
}

void table_text(struct table *t, uint32_t column, const char *text)
{
    struct table_value *v = cell(t, column, TABLE_TEXT);
    if (text)
        *v = (struct table_value){.known = true, .text = mem_strdup(text)};
}

void table_whole(struct table *t, uint32_t column, uint64_t value)
{
    *cell(t, column, TABLE_WHOLE) = (struct table_value){.known = true, .whole = value};
}

void table_at_least(struct table *t, uint32_t column, uint64_t value)
{
    *cell(t, column, TABLE_WHOLE) = (struct table_value){.known = true, .least = true, .whole = value};
}

void table_signed(struct table *t, uint32_t column, int64_t value)
{
    *cell(t, column, TABLE_SIGNED) = (struct table_value){.known = true, .negative_too = value};
}

void table_real(struct table *t, uint32_t column, double value)
{
    *cell(t, column, TABLE_REAL) = (struct table_value){.known = true, .real = value};
}

void table_estimate(struct table *t, uint32_t column, const struct estimate *value)
{
    struct table_value *v = cell(t, column, TABLE_ESTIMATE);
    struct estimate *copy = mem_alloc(sizeof(*copy));
    *copy = *value;
    *v = (struct table_value){.known = true, .estimate = copy};
}

void table_flag(struct table *t, uint32_t column, bool value)
{
    *cell(t, column, TABLE_FLAG) = (struct table_value){.known = true, .flag = value};
}
