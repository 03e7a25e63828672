/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/table/table.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct table *table_new(const char *name, uint32_t version, const struct table_column *columns,
                        uint32_t n_columns)
{
    struct table *t = mem_alloc(sizeof(*t));
    *t = (struct table){.name = name, .version = version, .columns = columns, .n_columns = n_columns};
    return t;
}

/* Frees the memory of a value, and makes the value unknown. */
static void clear(const struct table_column *c, struct table_value *v)
{
    if (v->known && (c->type == TABLE_TEXT || c->type == TABLE_LINES))
        free(v->text);
    if (v->known && c->type == TABLE_ESTIMATE)
        free(v->estimate);
    if (v->known && c->type == TABLE_HISTOGRAM)
        free(v->slots);
    v->known = false;
}

void table_clear(struct table *t)
{
    table_cut(t, 0);
}

void table_free(struct table *t)
{
    if (!t)
        return;
    table_clear(t);
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

/* Returns the value of the last row in this column. */
static struct table_value *last_value(struct table *t, uint32_t column)
{
    assert(column < t->n_columns && t->values.len >= t->n_columns);
    return &t->values.at[t->values.len - t->n_columns + column];
}

/* The same, made unknown. */
static struct table_value *cell(struct table *t, uint32_t column, enum table_type type)
{
    struct table_value *v = last_value(t, column);
    const struct table_column *c = &t->columns[column];
    assert(c->type == type || (c->type == TABLE_ADDRESS && type == TABLE_WHOLE) ||
           (c->type == TABLE_LINES && type == TABLE_TEXT));
    clear(c, v);
    return v;
}

void table_text(struct table *t, uint32_t column, const char *text)
{
    struct table_value *v = cell(t, column, TABLE_TEXT);
    if (text)
        *v = (struct table_value){.known = true, .text = mem_strdup(text)};
}

struct table_value *table_cell(struct table *t, uint32_t row, uint32_t column)
{
    struct table_value *v = &t->values.at[(size_t)row * t->n_columns + column];
    clear(&t->columns[column], v);
    return v;
}

void table_whole(struct table *t, uint32_t column, uint64_t value)
{
    *cell(t, column, TABLE_WHOLE) = (struct table_value){.known = true, .whole = value};
}

void table_at_least(struct table *t, uint32_t column, uint64_t value)
{
    *cell(t, column, TABLE_WHOLE) = (struct table_value){.known = true, .least = true, .whole = value};
}

void table_mark_least(struct table *t, uint32_t column)
{
    last_value(t, column)->least = last_value(t, column)->known;
}

void table_mark_unsure(struct table *t, uint32_t column)
{
    last_value(t, column)->unsure = last_value(t, column)->known;
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

void table_histogram(struct table *t, uint32_t column, const uint64_t *slots, uint32_t n)
{
    struct table_value *v = cell(t, column, TABLE_HISTOGRAM);
    assert(n <= TABLE_SLOTS);
    *v = (struct table_value){.known = true, .slots = mem_array(TABLE_SLOTS, sizeof(*slots))};
    memset(v->slots, 0, TABLE_SLOTS * sizeof(*slots));
    memcpy(v->slots, slots, n * sizeof(*slots));
}

double table_number(const struct table *t, uint32_t row, uint32_t column)
{
    const struct table_value *v = table_at(t, row, column);
    if (!v->known)
        return NAN;
    switch (t->columns[column].type) {
    case TABLE_WHOLE:
    case TABLE_ADDRESS:
        return (double)v->whole;
    case TABLE_SIGNED:
        return (double)v->negative_too;
    case TABLE_REAL:
        return v->real;
    case TABLE_ESTIMATE:
        return v->estimate->value;
    case TABLE_FLAG:
        return v->flag;
    default:
        return NAN;
    }
}

void table_move_rows(struct table *to, struct table *from)
{
    assert(to->n_columns == from->n_columns);
    vec_each (struct table_value, v, &from->values)
        *vec_push(&to->values) = *v;
    from->values.len = 0;
}

/* Of a pointer, what it points to is copied. */
static struct table_value copy_of(const struct table_column *c, const struct table_value *v)
{
    struct table_value copy = *v;
    if (v->known && (c->type == TABLE_TEXT || c->type == TABLE_LINES))
        copy.text = mem_strdup(v->text);
    if (v->known && c->type == TABLE_ESTIMATE) {
        copy.estimate = mem_alloc(sizeof(*copy.estimate));
        *copy.estimate = *v->estimate;
    }
    if (v->known && c->type == TABLE_HISTOGRAM) {
        copy.slots = mem_array(TABLE_SLOTS, sizeof(*copy.slots));
        memcpy(copy.slots, v->slots, TABLE_SLOTS * sizeof(*copy.slots));
    }
    return copy;
}

void table_copy_rows(struct table *to, const struct table *from)
{
    assert(to->n_columns == from->n_columns);
    for (size_t i = 0; i < from->values.len; i++)
        *vec_push(&to->values) = copy_of(&from->columns[i % from->n_columns], &from->values.at[i]);
}

void table_cut(struct table *t, uint32_t rows)
{
    while (t->values.len > (size_t)rows * t->n_columns) {
        size_t last = --t->values.len;
        clear(&t->columns[last % t->n_columns], &t->values.at[last]);
    }
}

void table_keep(struct table *t, bool (*keeps)(const struct table *t, uint32_t row, void *arg), void *arg)
{
    uint32_t n = table_rows(t), kept = 0;
    size_t bytes = t->n_columns * sizeof(struct table_value);
    for (uint32_t row = 0; row < n; row++) {
        struct table_value *v = &t->values.at[(size_t)row * t->n_columns];
        if (!keeps(t, row, arg)) {
            for (uint32_t i = 0; i < t->n_columns; i++)
                clear(&t->columns[i], &v[i]);
            continue;
        }
        if (kept != row)
            memcpy(&t->values.at[(size_t)kept * t->n_columns], v, bytes);
        kept++;
    }
    t->values.len = (size_t)kept * t->n_columns;
}

struct order {
    const struct table *t;
    uint32_t column;
    enum table_order order;
};

/* Compares two rows by their known values in the column, for qsort(): numbers by size, texts by their bytes. */
static int compare_values(const struct order *o, uint32_t a, uint32_t b)
{
    const struct table_value *x = table_at(o->t, a, o->column), *y = table_at(o->t, b, o->column);
    enum table_type type = o->t->columns[o->column].type;
    if (type == TABLE_TEXT || type == TABLE_LINES)
        return strcmp(x->text, y->text);
    if (type == TABLE_WHOLE || type == TABLE_ADDRESS)
        return x->whole < y->whole ? -1 : x->whole > y->whole;
    double p = table_number(o->t, a, o->column), q = table_number(o->t, b, o->column);
    return p < q ? -1 : p > q;
}

/* Unknown values come last in every order. */
static int compare(const struct order *o, uint32_t a, uint32_t b)
{
    bool a_known = table_at(o->t, a, o->column)->known, b_known = table_at(o->t, b, o->column)->known;
    enum table_type type = o->t->columns[o->column].type;
    if (!a_known || !b_known)
        return b_known - a_known;
    int c = compare_values(o, a, b);
    bool text = type == TABLE_TEXT || type == TABLE_LINES;
    return o->order == TABLE_LEAST_FIRST || (text && o->order == TABLE_USUAL) ? c : -c;
}

static int compare_rows(const void *a, const void *b, void *arg)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int c = compare(arg, x, y);
    return c ? c : x < y ? -1 : 1;
}

void table_sort(struct table *t, uint32_t column, enum table_order order_by)
{
    uint32_t n = table_rows(t), *order = mem_array(n ? n : 1, sizeof(*order));
    struct order o = {t, column, order_by};
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof(*order), compare_rows, &o);
    size_t bytes = t->n_columns * sizeof(struct table_value);
    struct table_value *sorted = mem_array(n ? n : 1, bytes);
    for (uint32_t i = 0; i < n; i++)
        memcpy(sorted + (size_t)i * t->n_columns, &t->values.at[(size_t)order[i] * t->n_columns], bytes);
    memcpy(t->values.at ? t->values.at : sorted, sorted, n * bytes);
    free(sorted);
    free(order);
}

/* The end of the name of a column with a rate. */
#define PER_SECOND "_per_s"

void table_add_key(struct buf *b, const struct table_column *c)
{
    static const char *const units[] = {
        [TABLE_PLAIN] = "",       [TABLE_COUNT] = "",      [TABLE_BYTES] = "_bytes",
        [TABLE_DURATION] = "_ns", [TABLE_INSTANT] = "_ns", [TABLE_PERCENT] = "_percent",
    };
    const char *rate = strstr(c->name, PER_SECOND);
    int len = (int)(rate && !rate[strlen(PER_SECOND)] ? (size_t)(rate - c->name) : strlen(c->name));
    buf_printf(b, "%.*s%s%s", len, c->name, units[c->unit], c->name + len);
}
