/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/table/table_view.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "view/formats/json.h"
#include "view/table/histogram.h"
#include "view/text/columns.h"

void table_view_add_quantity(struct buf *b, enum table_unit unit, double value)
{
    char text[UNITS_TEXT_BYTES];
    if (value < 0 && unit != TABLE_PLAIN) {
        buf_addch(b, '-');
        value = -value;
    }
    switch (unit) {
    case TABLE_BYTES:
        buf_addstr(b, units_format_size(text, value));
        break;
    case TABLE_COUNT:
        buf_addstr(b, units_format_count(text, value));
        break;
    case TABLE_DURATION:
        buf_addstr(b, units_format_duration(text, value));
        break;
    case TABLE_INSTANT:
        text_add_instant(b, (uint64_t)value);
        break;
    case TABLE_PERCENT:
        text_add_share(b, value, 100);
        break;
    case TABLE_PLAIN:
        buf_printf(b, "%g", value);
        break;
    }
}

/* Appends the value as a whole number with its unit, rounded: "-12,345,678 B". False: nothing was appended, because the
 * unit is not bytes, count or duration, or the value is no plain number (an estimate, a text). */
static bool add_exact(struct buf *b, const struct table_column *c, const struct table_value *v)
{
    static const char *const units[] = {[TABLE_BYTES] = " B", [TABLE_COUNT] = "", [TABLE_DURATION] = " ns"};
    bool has_unit = c->unit == TABLE_BYTES || c->unit == TABLE_COUNT || c->unit == TABLE_DURATION, negative;
    uint64_t whole;
    if (has_unit && c->type == TABLE_WHOLE) {
        negative = false;
        whole = v->whole;
    } else if (has_unit && c->type == TABLE_SIGNED) {
        negative = v->negative_too < 0;
        whole = negative ? 0 - (uint64_t)v->negative_too : (uint64_t)v->negative_too;
    } else if (has_unit && c->type == TABLE_REAL) {
        negative = v->real <= -0.5;
        whole = (uint64_t)((v->real < 0 ? -v->real : v->real) + 0.5);
    } else {
        return false;
    }
    if (negative)
        buf_addch(b, '-');
    text_add_number(b, whole, NULL);
    buf_addstr(b, units[c->unit]);
    return true;
}

static void add_value(struct buf *b, const struct text_style *style, const struct table_column *c,
                      const struct table_value *v)
{
    if (!v->known) {
        buf_addch(b, '-');
        return;
    }
    if (v->least)
        buf_addstr(b, text_at_least(style));
    else if (v->unsure)
        buf_addstr(b, "~ ");
    if (style->exact && add_exact(b, c, v))
        return;
    switch (c->type) {
    case TABLE_TEXT:
        text_add_name(b, style, v->text);
        break;
    case TABLE_LINES:
    case TABLE_HISTOGRAM:
        break;
    case TABLE_WHOLE:
        if (c->unit == TABLE_PLAIN)
            buf_printf(b, "%" PRIu64, v->whole);
        else if (c->unit == TABLE_INSTANT)
            text_add_instant(b, v->whole);
        else
            table_view_add_quantity(b, c->unit, (double)v->whole);
        break;
    case TABLE_SIGNED:
        if (c->unit == TABLE_PLAIN)
            buf_printf(b, "%" PRId64, v->negative_too);
        else
            table_view_add_quantity(b, c->unit, (double)v->negative_too);
        break;
    case TABLE_REAL:
        table_view_add_quantity(b, c->unit, v->real);
        break;
    case TABLE_ESTIMATE:
        text_add_figure(b, style, v->estimate, c->unit == TABLE_BYTES ? TEXT_BYTES : TEXT_COUNT);
        break;
    case TABLE_FLAG:
        buf_addstr(b, v->flag ? "yes" : "no");
        break;
    case TABLE_ADDRESS:
        buf_printf(b, "0x%" PRIx64, v->whole);
        break;
    }
}

char *table_view_header(const struct table_column *c)
{
    char *header = mem_strdup(c->header ? c->header : c->name);
    for (char *p = header; *p; p++)
        *p = *p == '_' ? ' ' : (char)toupper((unsigned char)*p);
    return header;
}

/* Returns whether the column is shown: all are but those with hide_if_empty and without a value. */
static bool is_shown(const struct table *t, uint32_t column)
{
    if (table_stands_below(t, column) || table_hides(t, column))
        return false;
    bool shown = !t->columns[column].hide_if_empty;
    for (uint32_t row = 0; row < table_rows(t) && !shown; row++)
        shown = table_at(t, row, column)->known;
    return shown;
}

void table_view_add_value(struct buf *b, const struct text_style *style, const struct table *t, uint32_t row,
                          uint32_t column)
{
    add_value(b, style, &t->columns[column], table_at(t, row, column));
}

static void add_lines(struct buf *below, const struct text_style *style, const char *line)
{
    while (*line) {
        size_t len = strcspn(line, "\n");
        char *one = strndup(line, len);
        buf_addstr(below, "    ");
        text_add_name(below, style, one ? one : "");
        buf_addch(below, '\n');
        free(one);
        line += len + (line[len] == '\n');
    }
}

void table_view_add_lines(struct buf *below, const struct text_style *style, const struct table *t,
                          uint32_t row)
{
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct table_value *v = table_at(t, row, i);
        if (!table_stands_below(t, i) || t->columns[i].report_text || t->columns[i].fields ||
            table_hides(t, i) || !v->known)
            continue;
        if (t->columns[i].type == TABLE_HISTOGRAM)
            histogram_add_text(below, style, &t->columns[i], v->slots);
        else
            add_lines(below, style, v->text);
    }
}

static uint32_t count_giving(const struct table *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_columns; i++)
        n += t->columns[i].shrinkable && is_shown(t, i);
    return n;
}

/* Returns, for a table without shrinkable columns, the last text without a greatest length. */
static uint32_t elastic_column(const struct table *t)
{
    uint32_t elastic = t->n_columns;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct table_column *c = &t->columns[i];
        if (c->type == TABLE_TEXT && !c->width && !table_hides(t, i) &&
            (c->wrap ? is_shown(t, i) : !c->hide_if_empty))
            elastic = i;
    }
    return elastic;
}

/* Is it there on the narrowest screen? A single shrinkable column names the rows, too. */
static bool is_kept(const struct table *t, uint32_t column, uint32_t giving)
{
    return (giving == 1 && t->columns[column].shrinkable) || (column < 64 && t->keys >> column & 1);
}

void table_view_text(struct sink *out, const struct table *t, const struct text_style *style)
{
    const uint32_t giving = count_giving(t), elastic = giving ? t->n_columns : elastic_column(t);
    struct columns g = {.style = style};
    struct VEC(char *) headers = {0};
    for (uint32_t i = 0; i < t->n_columns; i++) {
        if (table_stands_below(t, i) || table_hides(t, i))
            continue;
        char *header = table_view_header(&t->columns[i]);
        *vec_push(&headers) = header;
        if (!is_shown(t, i)) {
            columns_empty(&g, header);
            continue;
        }
        columns_column(&g, (struct columns_column){
                               .header = header,
                               .left = t->columns[i].type == TABLE_TEXT,
                               .drop_rank = is_kept(t, i, giving) ? 0 : t->columns[i].drop_rank,
                               .elastic = i == elastic || t->columns[i].shrinkable || t->columns[i].wrap,
                               .wrap = t->columns[i].wrap});
    }
    for (uint32_t row = 0; row < table_rows(t); row++) {
        columns_row(&g);
        for (uint32_t i = 0; i < t->n_columns; i++) {
            if (!is_shown(t, i))
                continue;
            struct buf cell = BUF_INIT;
            if (!t->columns[i].wrap || table_at(t, row, i)->known)
                add_value(&cell, style, &t->columns[i], table_at(t, row, i));
            columns_cell(&g, &cell);
        }
        struct buf below = BUF_INIT;
        table_view_add_lines(&below, style, t, row);
        if (below.len)
            columns_below(&g, &below);
        buf_release(&below);
    }
    columns_write(&g, out);
    columns_release(&g);
    vec_each (char *, header, &headers)
        free(*header);
    vec_release(&headers);
}

static void write_lines(struct json *j, const char *key, const char *text)
{
    json_open(j, key, '[');
    while (*text) {
        size_t len = strcspn(text, "\n");
        char *line = strndup(text, len);
        json_text(j, NULL, line);
        free(line);
        text += len + (text[len] == '\n');
    }
    json_close(j, ']');
}

/* Writes a line as an object: `fields` marks texts, all others are numbers. */
static void write_fields(struct json *j, const char *fields, const char *line, size_t len)
{
    const char *end = line + len;
    json_open(j, NULL, '{');
    for (const char *name = fields; *name;) {
        size_t name_len = strcspn(name, ",");
        bool text = name_len > 5 && !memcmp(name + name_len - 5, ":text", 5);
        char *key = strndup(name, text ? name_len - 5 : name_len);
        size_t value_len = strcspn(line, "\t\n");
        char *value = strndup(line, value_len);
        if (text)
            json_text(j, key, value);
        else
            json_signed(j, key, strtoll(value ? value : "", NULL, 10));
        free(key);
        free(value);
        name += name_len + (name[name_len] == ',');
        line += value_len + (line + value_len < end);
    }
    json_close(j, '}');
}

static void write_objects(struct json *j, const char *key, const char *fields, const char *text)
{
    json_open(j, key, '[');
    while (*text) {
        size_t len = strcspn(text, "\n");
        write_fields(j, fields, text, len);
        text += len + (text[len] == '\n');
    }
    json_close(j, ']');
}

static void write_json(struct json *j, const char *key, const struct table_column *c,
                       const struct table_value *v)
{
    if (!v->known && c->type != TABLE_ESTIMATE) {
        json_null(j, key);
        return;
    }
    switch (c->type) {
    case TABLE_TEXT:
        json_text(j, key, v->text);
        break;
    case TABLE_WHOLE:
        if (c->unit == TABLE_INSTANT)
            json_instant(j, key, v->whole);
        else
            json_whole(j, key, v->whole);
        break;
    case TABLE_SIGNED:
        json_signed(j, key, v->negative_too);
        break;
    case TABLE_REAL:
        json_real(j, key, v->real);
        break;
    case TABLE_ESTIMATE:
        json_estimate(j, key, v->known ? v->estimate : NULL);
        break;
    case TABLE_FLAG:
        json_flag(j, key, v->flag);
        break;
    case TABLE_ADDRESS:
        json_hex(j, key, v->whole);
        break;
    case TABLE_LINES:
        if (c->fields)
            write_objects(j, key, c->fields, v->text);
        else
            write_lines(j, key, v->text);
        break;
    case TABLE_HISTOGRAM:
        histogram_write_json(j, key, v->slots);
        break;
    }
}

/* Writes the members of the object of a row. */
static void write_row(struct json *j, const struct table *t, uint32_t row)
{
    struct buf key = BUF_INIT;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        if (table_hides(t, i) || t->columns[i].report_text)
            continue;
        buf_reset(&key);
        table_add_key(&key, &t->columns[i]);
        write_json(j, buf_str(&key), &t->columns[i], table_at(t, row, i));
    }
    buf_release(&key);
}

void table_view_json_row(struct sink *out, const struct table *t, uint32_t row)
{
    table_view_json_row_at(out, t, row, 0);
}

void table_view_json_row_at(struct sink *out, const struct table *t, uint32_t row, uint64_t time_ns)
{
    struct json j = {.out = out, .line = true};
    json_open(&j, NULL, '{');
    if (time_ns)
        json_whole(&j, "time_ns", time_ns);
    write_row(&j, t, row);
    json_close(&j, '}');
}

void table_view_json_rows(struct json *j, const char *key, const struct table *t)
{
    json_open(j, key, '[');
    for (uint32_t row = 0; row < table_rows(t); row++) {
        json_open(j, NULL, '{');
        write_row(j, t, row);
        json_close(j, '}');
    }
    json_close(j, ']');
}

void table_view_json(struct sink *out, const struct table *t)
{
    struct json j = {.out = out};
    struct buf text = BUF_INIT;
    json_open(&j, NULL, '{');
    buf_printf(&text, "allium-%s", t->name);
    json_text(&j, "schema", buf_str(&text));
    json_whole(&j, "version", t->version);
    table_view_json_rows(&j, "rows", t);
    json_close(&j, '}');
    buf_release(&text);
}
