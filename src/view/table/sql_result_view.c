/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/table/sql_result_view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "view/text/columns.h"

#define VERSION 1

static void add_hex(struct buf *b, const struct sql_result_value *v)
{
    for (size_t i = 0; i < v->bytes; i++)
        buf_printf(b, "%02x", (unsigned char)v->text[i]);
}

/* Appends the value without quotes; nothing for NULL. */
static void add_value(struct buf *b, const struct sql_result_value *v)
{
    switch (v->type) {
    case SQL_RESULT_NULL:
        break;
    case SQL_RESULT_WHOLE:
        buf_printf(b, "%" PRId64, v->whole);
        break;
    case SQL_RESULT_REAL:
        buf_printf(b, "%.15g", v->real);
        break;
    case SQL_RESULT_TEXT:
        buf_addstr(b, v->text);
        break;
    case SQL_RESULT_BYTES:
        buf_addstr(b, "X'");
        add_hex(b, v);
        buf_addch(b, '\'');
        break;
    }
}

/* ---- text ---- */

static bool all_numbers(const struct sql_result *a, size_t column)
{
    bool any = false;
    for (size_t row = 0; row < sql_result_rows(a); row++) {
        enum sql_result_type type = sql_result_at(a, row, column)->type;
        if (type != SQL_RESULT_WHOLE && type != SQL_RESULT_REAL && type != SQL_RESULT_NULL)
            return false;
        any |= type != SQL_RESULT_NULL;
    }
    return any;
}

static void write_text(struct sql_result_view *v, const struct sql_result *a)
{
    struct text_style style = v->style;
    struct columns g = {.style = &style, .bare = v->begun};
    struct VEC(char *) headers = {0};
    style.columns = 0; /* no column of the query is dropped */
    for (size_t i = 0; i < a->columns.len; i++) {
        struct buf header = BUF_INIT;
        text_add_name(&header, &style, a->columns.at[i]);
        *vec_push(&headers) = buf_detach(&header);
        columns_column(&g, (struct columns_column){.header = headers.at[i], .left = !all_numbers(a, i)});
    }
    for (size_t row = 0; row < sql_result_rows(a); row++) {
        columns_row(&g);
        for (size_t i = 0; i < a->columns.len; i++) {
            struct buf raw = BUF_INIT, cell = BUF_INIT;
            add_value(&raw, sql_result_at(a, row, i));
            text_add_name(&cell, &style,
                          sql_result_at(a, row, i)->type == SQL_RESULT_NULL ? "-" : buf_str(&raw));
            columns_cell(&g, &cell);
            buf_release(&raw);
        }
    }
    columns_write(&g, v->out);
    columns_release(&g);
    vec_each (char *, header, &headers)
        free(*header);
    vec_release(&headers);
}

/* ---- JSON ---- */

static void write_json_value(struct json *j, const char *key, const struct sql_result_value *v)
{
    struct buf hex = BUF_INIT;
    switch (v->type) {
    case SQL_RESULT_NULL:
        json_null(j, key);
        break;
    case SQL_RESULT_WHOLE:
        json_signed(j, key, v->whole);
        break;
    case SQL_RESULT_REAL:
        json_real(j, key, v->real);
        break;
    case SQL_RESULT_TEXT:
        json_text(j, key, v->text);
        break;
    case SQL_RESULT_BYTES:
        add_hex(&hex, v);
        json_text(j, key, buf_str(&hex));
        buf_release(&hex);
        break;
    }
}

static void write_json(struct sql_result_view *v, const struct sql_result *a, bool more)
{
    struct json *j = &v->json;
    if (!v->begun) {
        j->out = v->out;
        json_open(j, NULL, '{');
        json_text(j, "schema", "allium-sql");
        json_whole(j, "version", VERSION);
        json_open(j, "rows", '[');
    }
    for (size_t row = 0; row < sql_result_rows(a); row++) {
        json_open(j, NULL, '{');
        for (size_t i = 0; i < a->columns.len; i++)
            write_json_value(j, a->columns.at[i], sql_result_at(a, row, i));
        json_close(j, '}');
    }
    if (!more) {
        json_close(j, ']');
        json_close(j, '}');
    }
}

/* ---- CSV ---- */

static void write_field(struct sink *out, const char *text, bool last)
{
    bool plain = !strpbrk(text, "\",\r\n");
    if (!plain)
        sink_char(out, '"');
    for (; *text; text++) {
        if (*text == '"')
            sink_char(out, '"');
        sink_char(out, *text);
    }
    sink_text(out, plain ? "" : "\"");
    sink_text(out, last ? "\r\n" : ",");
}

static void write_csv(struct sql_result_view *v, const struct sql_result *a)
{
    size_t n = a->columns.len;
    for (size_t i = 0; i < n && !v->begun; i++)
        write_field(v->out, a->columns.at[i], i + 1 == n);
    for (size_t row = 0; row < sql_result_rows(a); row++)
        for (size_t i = 0; i < n; i++) {
            struct buf cell = BUF_INIT;
            add_value(&cell, sql_result_at(a, row, i));
            write_field(v->out, buf_str(&cell), i + 1 == n);
            buf_release(&cell);
        }
}

void sql_result_view_write(struct sql_result_view *v, const struct sql_result *a, bool more)
{
    if (v->form == SQL_RESULT_AS_JSON)
        write_json(v, a, more);
    else if (v->form == SQL_RESULT_AS_CSV)
        write_csv(v, a);
    else if (!v->begun || sql_result_rows(a))
        write_text(v, a);
    v->begun = true;
}
