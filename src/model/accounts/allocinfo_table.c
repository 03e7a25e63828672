/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/accounts/allocinfo_table.h"

#include <math.h>

const struct table_column allocinfo_columns[ALLOCINFO_COLUMNS] = {
    [ALLOCINFO_CHANGE_BYTES] = {"change", TABLE_BYTES, TABLE_SIGNED},
    [ALLOCINFO_RATE_BYTES] = {"size_per_s", TABLE_BYTES, TABLE_REAL},
    [ALLOCINFO_BEFORE_BYTES] = {"before", TABLE_BYTES, TABLE_SIGNED, .drop_rank = 3},
    [ALLOCINFO_SIZE] = {"size", TABLE_BYTES, TABLE_SIGNED},
    [ALLOCINFO_CHANGE_CALLS] = {"calls_change", TABLE_COUNT, TABLE_SIGNED},
    [ALLOCINFO_RATE_CALLS] = {"calls_per_s", TABLE_COUNT, TABLE_REAL},
    [ALLOCINFO_CALLS] = {"calls", TABLE_COUNT, TABLE_WHOLE},
    [ALLOCINFO_AVERAGE] = {"average", TABLE_BYTES, TABLE_REAL, .drop_rank = 2},
    [ALLOCINFO_SITES] = {"sites", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 1},
    [ALLOCINFO_INEXACT] = {"inexact", TABLE_COUNT, TABLE_WHOLE},
    [ALLOCINFO_ACCURATE] = {"accurate", TABLE_PLAIN, TABLE_FLAG},
    [ALLOCINFO_FUNCTION] = {"function", TABLE_PLAIN, TABLE_TEXT},
    [ALLOCINFO_MODULE] = {"module", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true},
    [ALLOCINFO_DIRECTORY] = {"directory", TABLE_PLAIN, TABLE_TEXT},
    [ALLOCINFO_FILE] = {"file", TABLE_PLAIN, TABLE_TEXT},
    [ALLOCINFO_LINE] = {"line", TABLE_PLAIN, TABLE_WHOLE},
};

#define BIT(column) (1u << (column))

enum allocinfo_column allocinfo_column_usual(enum account_view view)
{
    static const enum allocinfo_column usual[] = {[ACCOUNT_NOW] = ALLOCINFO_SIZE,
                                                  [ACCOUNT_CHANGE] = ALLOCINFO_CHANGE_BYTES,
                                                  [ACCOUNT_RATE] = ALLOCINFO_RATE_BYTES};
    return usual[view];
}

enum allocinfo_column allocinfo_column_name(enum account_group group)
{
    static const enum allocinfo_column names[] = {[ACCOUNT_BY_PLACE] = ALLOCINFO_FILE,
                                                  [ACCOUNT_BY_FILE] = ALLOCINFO_FILE,
                                                  [ACCOUNT_BY_DIRECTORY] = ALLOCINFO_DIRECTORY,
                                                  [ACCOUNT_BY_MODULE] = ALLOCINFO_MODULE,
                                                  [ACCOUNT_BY_MODULE_FUNCTION] = ALLOCINFO_FUNCTION};
    return names[group];
}

bool allocinfo_column_has(enum account_view view, enum account_group group, enum allocinfo_column column)
{
    static const unsigned of_views[] = {
        [ACCOUNT_NOW] = BIT(ALLOCINFO_SIZE) | BIT(ALLOCINFO_CALLS) | BIT(ALLOCINFO_AVERAGE),
        [ACCOUNT_CHANGE] = BIT(ALLOCINFO_CHANGE_BYTES) | BIT(ALLOCINFO_BEFORE_BYTES) | BIT(ALLOCINFO_SIZE) |
                           BIT(ALLOCINFO_CHANGE_CALLS) | BIT(ALLOCINFO_CALLS),
        [ACCOUNT_RATE] = BIT(ALLOCINFO_RATE_BYTES) | BIT(ALLOCINFO_RATE_CALLS) | BIT(ALLOCINFO_SIZE) |
                         BIT(ALLOCINFO_CALLS),
    };
    static const unsigned of_groups[] = {
        [ACCOUNT_BY_PLACE] = BIT(ALLOCINFO_ACCURATE) | BIT(ALLOCINFO_FUNCTION) | BIT(ALLOCINFO_MODULE) |
                             BIT(ALLOCINFO_FILE) | BIT(ALLOCINFO_LINE),
        [ACCOUNT_BY_FILE] = BIT(ALLOCINFO_SITES) | BIT(ALLOCINFO_INEXACT) | BIT(ALLOCINFO_FILE),
        [ACCOUNT_BY_DIRECTORY] = BIT(ALLOCINFO_SITES) | BIT(ALLOCINFO_INEXACT) | BIT(ALLOCINFO_DIRECTORY),
        [ACCOUNT_BY_MODULE] = BIT(ALLOCINFO_SITES) | BIT(ALLOCINFO_INEXACT) | BIT(ALLOCINFO_MODULE),
        [ACCOUNT_BY_MODULE_FUNCTION] =
            BIT(ALLOCINFO_SITES) | BIT(ALLOCINFO_INEXACT) | BIT(ALLOCINFO_FUNCTION) | BIT(ALLOCINFO_MODULE),
    };
    return (of_views[view] | of_groups[group]) & BIT(column);
}

/* ---- values ---- */

int64_t allocinfo_bytes(const struct account_row *row, enum account_moment moment)
{
    return (int64_t)row->of[moment].of[ACCOUNT_ALLOCATED_BYTES];
}

int64_t allocinfo_bytes_change(const struct account_row *row)
{
    return (int64_t)(row->of[ACCOUNT_AFTER].of[ACCOUNT_ALLOCATED_BYTES] -
                     row->of[ACCOUNT_BEFORE].of[ACCOUNT_ALLOCATED_BYTES]);
}

int64_t allocinfo_calls_change(const struct account_row *row)
{
    return (int64_t)(row->of[ACCOUNT_AFTER].of[ACCOUNT_ALLOCATED_CALLS] -
                     row->of[ACCOUNT_BEFORE].of[ACCOUNT_ALLOCATED_CALLS]);
}

/* Returns the number of sites, or of inexact sites, at the moment that has more of them. */
static uint32_t sites_of(const struct account_row *row, bool inexact)
{
    const struct account_sum *a = &row->of[ACCOUNT_BEFORE], *b = &row->of[ACCOUNT_AFTER];
    uint32_t before = inexact ? a->inexact : a->places, after = inexact ? b->inexact : b->places;
    return before > after ? before : after;
}

static double number_of(const struct account_row *row, const struct account_shape *shape,
                        enum allocinfo_column column)
{
    uint64_t calls = row->of[ACCOUNT_AFTER].of[ACCOUNT_ALLOCATED_CALLS];
    switch (column) {
    case ALLOCINFO_CHANGE_BYTES:
    case ALLOCINFO_RATE_BYTES:
        return (double)allocinfo_bytes_change(row) / (column == ALLOCINFO_RATE_BYTES ? shape->seconds : 1);
    case ALLOCINFO_CHANGE_CALLS:
    case ALLOCINFO_RATE_CALLS:
        return (double)allocinfo_calls_change(row) / (column == ALLOCINFO_RATE_CALLS ? shape->seconds : 1);
    case ALLOCINFO_BEFORE_BYTES:
        return (double)allocinfo_bytes(row, ACCOUNT_BEFORE);
    case ALLOCINFO_SIZE:
        return (double)allocinfo_bytes(row, ACCOUNT_AFTER);
    case ALLOCINFO_CALLS:
        return (double)calls;
    case ALLOCINFO_AVERAGE:
        return calls ? (double)allocinfo_bytes(row, ACCOUNT_AFTER) / (double)calls : NAN;
    case ALLOCINFO_SITES:
        return sites_of(row, false);
    case ALLOCINFO_INEXACT:
    case ALLOCINFO_ACCURATE:
        return sites_of(row, true);
    default:
        return row->key.line;
    }
}

static const char *text_of(const struct account_row *row, const struct alloc_texts *texts,
                           enum allocinfo_column column)
{
    uint32_t text = column == ALLOCINFO_FUNCTION ? row->key.function
                    : column == ALLOCINFO_MODULE ? row->key.module
                                                 : row->key.file;
    return alloc_texts_get(texts, text);
}

/* ---- the table ---- */

struct ordered_by {
    const struct alloc_texts *texts;
    const struct account_shape *shape;
};

static struct account_order_key order_key(const struct account_row *row, void *arg)
{
    const struct ordered_by *o = arg;
    enum allocinfo_column column = o->shape->column;
    if (allocinfo_columns[column].type != TABLE_TEXT)
        return (struct account_order_key){.number = number_of(row, o->shape, column)};
    return (struct account_order_key){.text = text_of(row, o->texts, column),
                                      .then = column == ALLOCINFO_FILE ? -(double)row->key.line : 0};
}

static void put(struct table *t, const struct account_row *row, const struct alloc_texts *texts,
                const struct account_shape *shape, enum allocinfo_column column)
{
    double number = number_of(row, shape, column);
    switch (column) {
    case ALLOCINFO_CHANGE_BYTES:
        table_signed(t, column, allocinfo_bytes_change(row));
        break;
    case ALLOCINFO_CHANGE_CALLS:
        table_signed(t, column, allocinfo_calls_change(row));
        break;
    case ALLOCINFO_BEFORE_BYTES:
        table_signed(t, column, allocinfo_bytes(row, ACCOUNT_BEFORE));
        break;
    case ALLOCINFO_SIZE:
        table_signed(t, column, allocinfo_bytes(row, ACCOUNT_AFTER));
        break;
    case ALLOCINFO_CALLS:
        table_whole(t, column, row->of[ACCOUNT_AFTER].of[ACCOUNT_ALLOCATED_CALLS]);
        break;
    case ALLOCINFO_SITES:
    case ALLOCINFO_INEXACT:
        table_whole(t, column, sites_of(row, column == ALLOCINFO_INEXACT));
        break;
    case ALLOCINFO_ACCURATE:
        table_flag(t, column, !sites_of(row, true));
        break;
    case ALLOCINFO_LINE:
        table_whole(t, column, row->key.line);
        break;
    case ALLOCINFO_RATE_BYTES:
    case ALLOCINFO_RATE_CALLS:
    case ALLOCINFO_AVERAGE:
        if (!isnan(number))
            table_real(t, column, number);
        break;
    case ALLOCINFO_MODULE:
        table_text(t, column, row->key.module ? text_of(row, texts, column) : shape->built_in);
        break;
    default:
        table_text(t, column, text_of(row, texts, column));
    }
}

struct table *allocinfo_table_new(const struct account_rows *r, const struct alloc_texts *texts,
                                  const struct account_shape *shape)
{
    struct table *t = table_new("allocinfo", 1, allocinfo_columns, ALLOCINFO_COLUMNS);
    struct ordered_by by = {texts, shape};
    bool is_text = allocinfo_columns[shape->column].type == TABLE_TEXT;
    bool least_first = shape->order == TABLE_LEAST_FIRST || (is_text && shape->order == TABLE_USUAL);
    const struct account_order order = {order_key, &by, is_text, least_first, shape->top};
    struct account_ordered ordered = {0};
    account_rows_order(&ordered, r, &order);
    for (unsigned column = 0; column < ALLOCINFO_COLUMNS; column++)
        if (!allocinfo_column_has(shape->view, shape->group, column))
            t->hidden |= BIT(column);
    vec_each (const uint32_t, row, &ordered) {
        table_row(t);
        for (unsigned column = 0; column < ALLOCINFO_COLUMNS; column++)
            if (!table_hides(t, column))
                put(t, &r->at[*row], texts, shape, column);
    }
    vec_release(&ordered);
    return t;
}

void allocinfo_table_for_screen(struct table *t, const struct account_row *total)
{
    if (!sites_of(total, true))
        t->hidden |= BIT(ALLOCINFO_INEXACT) | BIT(ALLOCINFO_ACCURATE);
}
