/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/accounts/alloc_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct table_column alloc_columns[ALLOC_COLUMNS] = {
    [ALLOC_CHANGE_BYTES] = {"change", TABLE_BYTES, TABLE_SIGNED},
    [ALLOC_RATE_BYTES] = {"size_per_s", TABLE_BYTES, TABLE_REAL},
    [ALLOC_BEFORE_BYTES] = {"before", TABLE_BYTES, TABLE_SIGNED, .drop = 3},
    [ALLOC_SIZE] = {"size", TABLE_BYTES, TABLE_SIGNED},
    [ALLOC_CHANGE_CALLS] = {"calls_change", TABLE_COUNT, TABLE_SIGNED},
    [ALLOC_RATE_CALLS] = {"calls_per_s", TABLE_COUNT, TABLE_REAL},
    [ALLOC_CALLS] = {"calls", TABLE_COUNT, TABLE_WHOLE},
    [ALLOC_AVERAGE] = {"average", TABLE_BYTES, TABLE_REAL, .drop = 2},
    [ALLOC_SITES] = {"sites", TABLE_COUNT, TABLE_WHOLE, .drop = 1},
    [ALLOC_INEXACT] = {"inexact", TABLE_COUNT, TABLE_WHOLE},
    [ALLOC_ACCURATE] = {"accurate", TABLE_PLAIN, TABLE_FLAG},
    [ALLOC_FUNCTION] = {"function", TABLE_PLAIN, TABLE_TEXT},
    [ALLOC_MODULE] = {"module", TABLE_PLAIN, TABLE_TEXT, .rare = true},
    [ALLOC_DIRECTORY] = {"directory", TABLE_PLAIN, TABLE_TEXT},
    [ALLOC_FILE] = {"file", TABLE_PLAIN, TABLE_TEXT},
    [ALLOC_LINE] = {"line", TABLE_PLAIN, TABLE_WHOLE},
};

#define BIT(column) (1u << (column))

enum alloc_column alloc_column_usual(enum alloc_view view)
{
    static const enum alloc_column usual[] = {
        [ALLOC_NOW] = ALLOC_SIZE, [ALLOC_CHANGE] = ALLOC_CHANGE_BYTES, [ALLOC_RATE] = ALLOC_RATE_BYTES};
    return usual[view];
}

enum alloc_column alloc_column_name(enum alloc_group group)
{
    static const enum alloc_column names[] = {[ALLOC_BY_SITE] = ALLOC_FILE,
                                              [ALLOC_BY_FILE] = ALLOC_FILE,
                                              [ALLOC_BY_DIRECTORY] = ALLOC_DIRECTORY,
                                              [ALLOC_BY_MODULE] = ALLOC_MODULE,
                                              [ALLOC_BY_FUNCTION] = ALLOC_FUNCTION};
    return names[group];
}

bool alloc_column_has(enum alloc_view view, enum alloc_group group, enum alloc_column column)
{
    static const unsigned of_views[] = {
        [ALLOC_NOW] = BIT(ALLOC_SIZE) | BIT(ALLOC_CALLS) | BIT(ALLOC_AVERAGE),
        [ALLOC_CHANGE] = BIT(ALLOC_CHANGE_BYTES) | BIT(ALLOC_BEFORE_BYTES) | BIT(ALLOC_SIZE) |
                         BIT(ALLOC_CHANGE_CALLS) | BIT(ALLOC_CALLS),
        [ALLOC_RATE] = BIT(ALLOC_RATE_BYTES) | BIT(ALLOC_RATE_CALLS) | BIT(ALLOC_SIZE) | BIT(ALLOC_CALLS),
    };
    static const unsigned of_groups[] = {
        [ALLOC_BY_SITE] =
            BIT(ALLOC_ACCURATE) | BIT(ALLOC_FUNCTION) | BIT(ALLOC_MODULE) | BIT(ALLOC_FILE) | BIT(ALLOC_LINE),
        [ALLOC_BY_FILE] = BIT(ALLOC_SITES) | BIT(ALLOC_INEXACT) | BIT(ALLOC_FILE),
        [ALLOC_BY_DIRECTORY] = BIT(ALLOC_SITES) | BIT(ALLOC_INEXACT) | BIT(ALLOC_DIRECTORY),
        [ALLOC_BY_MODULE] = BIT(ALLOC_SITES) | BIT(ALLOC_INEXACT) | BIT(ALLOC_MODULE),
        [ALLOC_BY_FUNCTION] = BIT(ALLOC_SITES) | BIT(ALLOC_INEXACT) | BIT(ALLOC_FUNCTION) | BIT(ALLOC_MODULE),
    };
    return (of_views[view] | of_groups[group]) & BIT(column);
}

/* ---- values ---- */

/* So many sites there are, at either moment. */
static uint32_t at_most(const struct alloc_row *row, bool inexact)
{
    const struct alloc_sum *a = &row->of[ALLOC_BEFORE], *b = &row->of[ALLOC_AFTER];
    uint32_t before = inexact ? a->inexact : a->sites, after = inexact ? b->inexact : b->sites;
    return before > after ? before : after;
}

static double number_of(const struct alloc_row *row, const struct alloc_shape *shape,
                        enum alloc_column column)
{
    const struct alloc_sum *now = &row->of[ALLOC_AFTER];
    switch (column) {
    case ALLOC_CHANGE_BYTES:
    case ALLOC_RATE_BYTES:
        return (double)alloc_bytes_change(row) / (column == ALLOC_RATE_BYTES ? shape->seconds : 1);
    case ALLOC_CHANGE_CALLS:
    case ALLOC_RATE_CALLS:
        return (double)alloc_calls_change(row) / (column == ALLOC_RATE_CALLS ? shape->seconds : 1);
    case ALLOC_BEFORE_BYTES:
        return (double)row->of[ALLOC_BEFORE].bytes;
    case ALLOC_SIZE:
        return (double)now->bytes;
    case ALLOC_CALLS:
        return (double)now->calls;
    case ALLOC_AVERAGE:
        return now->calls ? (double)now->bytes / (double)now->calls : NAN;
    case ALLOC_SITES:
        return at_most(row, false);
    case ALLOC_INEXACT:
    case ALLOC_ACCURATE:
        return at_most(row, true);
    default:
        return row->key.line;
    }
}

static const char *text_of(const struct alloc_row *row, const struct alloc_texts *texts,
                           enum alloc_column column)
{
    uint32_t text = column == ALLOC_FUNCTION ? row->key.function
                    : column == ALLOC_MODULE ? row->key.module
                                             : row->key.file;
    return alloc_texts_get(texts, text);
}

/* ---- order ---- */

struct place {
    double number;
    const char *text;
    uint32_t row, line;
};

struct ordering {
    bool texts, least_first;
};

/* What is not known comes last; equal ones stay in order, and in a file its lines. */
static int compare(const void *a, const void *b, void *arg)
{
    const struct place *x = a, *y = b;
    const struct ordering *o = arg;
    bool x_known = o->texts ? x->text != NULL : !isnan(x->number),
         y_known = o->texts ? y->text != NULL : !isnan(y->number);
    int c = 0;
    if (!x_known || !y_known)
        c = y_known - x_known;
    else if (o->texts)
        c = strcmp(x->text, y->text);
    else
        c = x->number < y->number ? -1 : x->number > y->number;
    if (!o->least_first && x_known && y_known)
        c = -c;
    if (!c && o->texts && x->line != y->line)
        c = x->line < y->line ? -1 : 1;
    return c ? c : x->row < y->row ? -1 : x->row > y->row;
}

/*
 * The first rows in that order, at least `top` if there are so many; the caller frees them. When twice as many have
 * come they are sorted, and the second half goes: from then on most rows take one comparison.
 */
static struct place *put_in_order(const struct alloc_rows *r, const struct alloc_texts *texts,
                                  const struct alloc_shape *shape, size_t *n)
{
    bool is_text = alloc_columns[shape->sort].type == TABLE_TEXT, cut = false;
    struct ordering o = {is_text,
                         shape->order == TABLE_LEAST_FIRST || (is_text && shape->order == TABLE_USUAL)};
    size_t top = shape->top, room = top && top < r->all.len / 2 ? top * 2 : r->all.len;
    struct place *places = mem_array(room, sizeof(*places));
    *n = 0;
    for (uint32_t i = 0; i < r->all.len; i++) {
        const struct alloc_row *row = &r->all.at[i];
        struct place place = {.row = i, .line = shape->sort == ALLOC_FILE ? row->key.line : 0};
        if (is_text)
            place.text = text_of(row, texts, shape->sort);
        else
            place.number = number_of(row, shape, shape->sort);
        if (cut && compare(&place, &places[top - 1], &o) > 0)
            continue;
        if (*n == room) {
            qsort_r(places, *n, sizeof(*places), compare, &o);
            *n = top;
            cut = true;
        }
        places[(*n)++] = place;
    }
    qsort_r(places, *n, sizeof(*places), compare, &o);
    return places;
}

/* ---- the table ---- */

static void put(struct table *t, const struct alloc_row *row, const struct alloc_texts *texts,
                const struct alloc_shape *shape, enum alloc_column column)
{
    double number = number_of(row, shape, column);
    switch (column) {
    case ALLOC_CHANGE_BYTES:
        table_signed(t, column, alloc_bytes_change(row));
        break;
    case ALLOC_CHANGE_CALLS:
        table_signed(t, column, alloc_calls_change(row));
        break;
    case ALLOC_BEFORE_BYTES:
        table_signed(t, column, row->of[ALLOC_BEFORE].bytes);
        break;
    case ALLOC_SIZE:
        table_signed(t, column, row->of[ALLOC_AFTER].bytes);
        break;
    case ALLOC_CALLS:
        table_whole(t, column, row->of[ALLOC_AFTER].calls);
        break;
    case ALLOC_SITES:
    case ALLOC_INEXACT:
        table_whole(t, column, at_most(row, column == ALLOC_INEXACT));
        break;
    case ALLOC_ACCURATE:
        table_flag(t, column, !at_most(row, true));
        break;
    case ALLOC_LINE:
        table_whole(t, column, row->key.line);
        break;
    case ALLOC_RATE_BYTES:
    case ALLOC_RATE_CALLS:
    case ALLOC_AVERAGE:
        if (!isnan(number))
            table_real(t, column, number);
        break;
    case ALLOC_MODULE:
        table_text(t, column, row->key.module ? text_of(row, texts, column) : shape->built_in);
        break;
    default:
        table_text(t, column, text_of(row, texts, column));
    }
}

struct table *alloc_table_new(const struct alloc_rows *r, const struct alloc_texts *texts,
                              const struct alloc_shape *shape)
{
    struct table *t = table_new("allocinfo", 1, alloc_columns, ALLOC_COLUMNS);
    size_t n;
    struct place *places = put_in_order(r, texts, shape, &n);
    for (unsigned column = 0; column < ALLOC_COLUMNS; column++)
        if (!alloc_column_has(shape->view, shape->group, column))
            t->hidden |= BIT(column);
    for (size_t i = 0; i < n && (!shape->top || i < shape->top); i++) {
        table_row(t);
        for (unsigned column = 0; column < ALLOC_COLUMNS; column++)
            if (!table_hides(t, column))
                put(t, &r->all.at[places[i].row], texts, shape, column);
    }
    free(places);
    return t;
}
