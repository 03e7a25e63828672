/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/html_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_map.h"
#include "view/text/text.h"

/* Texts that are stored once, and for each row the number of its text + 1. */
struct dictionary {
    struct VEC(char *) texts;
    struct map index;
};

static uint32_t number_of(struct dictionary *d, const char *text, size_t len)
{
    bool added;
    size_t at = map_put(&d->index, text, len, d->texts.len, &added);
    if (added) {
        struct buf b = BUF_INIT;
        buf_add(&b, text, len);
        *vec_push(&d->texts) = buf_detach(&b);
    }
    return (uint32_t)at;
}

static void release(struct dictionary *d)
{
    vec_each (char *, text, &d->texts)
        free(*text);
    vec_release(&d->texts);
    map_release(&d->index);
}

static const char *unit_of(const struct table_column *c)
{
    switch (c->unit) {
    case TABLE_BYTES:
        return "bytes";
    case TABLE_COUNT:
        return "count";
    case TABLE_DURATION:
        return "ns";
    case TABLE_PERCENT:
        return "percent";
    case TABLE_INSTANT:
    case TABLE_PLAIN:
    default:
        return "plain";
    }
}

static bool is_text(const struct table_column *c)
{
    return c->type == TABLE_TEXT || c->type == TABLE_ADDRESS || c->type == TABLE_FLAG ||
           c->unit == TABLE_INSTANT;
}

/* Appends a value that is no number to add up, as people read it. */
static void add_value(struct buf *b, const struct table_column *c, const struct table_value *v)
{
    if (c->unit == TABLE_INSTANT)
        text_add_moment(b, v->whole);
    else if (c->type == TABLE_ADDRESS)
        buf_printf(b, "0x%llx", (unsigned long long)v->whole);
    else if (c->type == TABLE_FLAG)
        buf_addstr(b, v->flag ? "yes" : "no");
    else
        buf_addstr(b, v->text);
}

static void open_column(struct page_blob *b, const struct table_column *c, const char *kind)
{
    struct buf key = BUF_INIT, label = BUF_INIT;
    buf_addstr(&key, c->name);
    buf_addstr(&label, c->header ? c->header : c->name);
    for (char *at = label.data; at && *at; at++)
        *at = *at == '_' ? ' ' : *at;
    json_open(&b->json, NULL, '{');
    json_text(&b->json, "kind", kind);
    json_text(&b->json, "key", buf_str(&key));
    json_text(&b->json, "label", buf_str(&label));
    buf_release(&key);
    buf_release(&label);
}

static void add_texts(struct page_blob *b, const struct table *t, uint32_t column)
{
    const struct table_column *c = &t->columns[column];
    const uint32_t n = table_rows(t);
    uint32_t *of = mem_array(n + 1, sizeof(*of));
    struct dictionary d = {.texts = {0}};
    struct buf text = BUF_INIT;
    for (uint32_t row = 0; row < n; row++) {
        const struct table_value *v = table_at(t, row, column);
        if (!v->known)
            continue;
        buf_reset(&text);
        add_value(&text, c, v);
        of[row] = number_of(&d, buf_str(&text), text.len) + 1;
    }
    open_column(b, c, "text");
    json_flag(&b->json, "is_name", c->type == TABLE_TEXT && c->unit != TABLE_INSTANT);
    page_blob_add_texts(b, "texts", d.texts.at, d.texts.len);
    page_blob_add_u32(b, "of", of, n);
    json_close(&b->json, '}');
    buf_release(&text);
    release(&d);
    free(of);
}

static void add_numbers(struct page_blob *b, const struct table *t, uint32_t column)
{
    const struct table_column *c = &t->columns[column];
    const uint32_t n = table_rows(t);
    double *values = mem_array(n + 1, sizeof(*values));
    for (uint32_t row = 0; row < n; row++)
        values[row] = table_number(t, row, column);
    open_column(b, c, "number");
    json_text(&b->json, "unit", unit_of(c));
    page_blob_add_f64(b, "values", values, n, NULL, 0);
    json_close(&b->json, '}');
    free(values);
}

struct numbers VEC(uint32_t);

/* Adds the frames of a stack that was not met before, and where it ends. */
static void add_stack(struct dictionary *frames, struct numbers *lines, struct numbers *first,
                      const char *text)
{
    for (const char *at = text; *at;) {
        const size_t len = strcspn(at, "\n");
        const uint32_t frame = number_of(frames, at, len);
        *vec_push(lines) = frame;
        at += len + (at[len] == '\n');
    }
    *vec_push(first) = (uint32_t)lines->len;
}

static void add_stacks(struct page_blob *b, const struct table *t, uint32_t column)
{
    const uint32_t n = table_rows(t);
    uint32_t *of = mem_array(n + 1, sizeof(*of));
    struct dictionary stacks = {.texts = {0}}, frames = {.texts = {0}};
    struct numbers lines = {0}, first = {0};
    *vec_push(&first) = 0;
    for (uint32_t row = 0; row < n; row++) {
        const struct table_value *v = table_at(t, row, column);
        if (!v->known || !*v->text)
            continue;
        const uint32_t stack = number_of(&stacks, v->text, strlen(v->text));
        if (stack + 1 == first.len)
            add_stack(&frames, &lines, &first, v->text);
        of[row] = stack + 1;
    }
    open_column(b, &t->columns[column], "stack");
    page_blob_add_texts(b, "frames", frames.texts.at, frames.texts.len);
    page_blob_add_u32(b, "lines", lines.at, lines.len);
    page_blob_add_u32(b, "first", first.at, first.len);
    page_blob_add_u32(b, "of", of, n);
    json_close(&b->json, '}');
    release(&stacks);
    release(&frames);
    vec_release(&lines);
    vec_release(&first);
    free(of);
}

static bool has_values(const struct table *t, uint32_t column)
{
    for (uint32_t row = 0; row < table_rows(t); row++)
        if (table_at(t, row, column)->known)
            return true;
    return false;
}

static void add_column(struct page_blob *b, const struct table *t, uint32_t column)
{
    const struct table_column *c = &t->columns[column];
    const bool is_stack = c->type == TABLE_LINES && !c->report_text && !c->fields;
    if (table_hides(t, column) || (table_stands_below(t, column) && !is_stack) || !has_values(t, column))
        return;
    if (is_stack)
        add_stacks(b, t, column);
    else if (is_text(c))
        add_texts(b, t, column);
    else
        add_numbers(b, t, column);
}

static void add_times(struct page_blob *b, const uint64_t *times_ns, uint32_t n)
{
    double *ms = mem_array(n + 1, sizeof(*ms));
    for (uint32_t i = 0; i < n; i++)
        ms[i] = floor((double)times_ns[i] / 1e6);
    page_blob_add_f64(b, "time_ms", ms, n, NULL, 0);
    free(ms);
}

void html_table_add(struct page_blob *b, const struct table *t, uint32_t weight, const uint64_t *times_ns)
{
    json_open(&b->json, "table", '{');
    json_whole(&b->json, "rows", table_rows(t));
    json_text(&b->json, "weight", t->columns[weight].name);
    if (times_ns)
        add_times(b, times_ns, table_rows(t));
    json_open(&b->json, "columns", '[');
    for (uint32_t i = 0; i < t->n_columns; i++)
        add_column(b, t, i);
    json_close(&b->json, ']');
    json_close(&b->json, '}');
}
