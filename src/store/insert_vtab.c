/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/insert_vtab.h"

#include "base/buf.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

/* bytes of room that stay; a row may have texts that are longer than all others */
#define TEXTS_KEPT (1u << 20)

struct value {
    enum { VALUE_NULL, VALUE_INT, VALUE_REAL, VALUE_TEXT } type;
    int bytes; /* of a text */
    union {
        int64_t number;
        double real;
        size_t text; /* where it begins among the texts */
    };
};

struct insert_vtab {
    struct buf texts;
    int width, used; /* values: of a row, waiting */
    struct value values[];
};

struct table {
    sqlite3_vtab base;
    const struct insert_vtab *feed;
};

struct cursor {
    sqlite3_vtab_cursor base;
    const struct value *row, *end;
};

static int connect_table(sqlite3 *db, void *feed, int n_words, const char *const *words, sqlite3_vtab **out,
                         char **why)
{
    char text[1024];
    const struct insert_vtab *f = feed;
    int at = snprintf(text, sizeof(text), "CREATE TABLE feed(");
    for (int i = 0; i < f->width; i++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, i ? ",c%d" : "c%d", i);
    snprintf(text + at, sizeof(text) - (size_t)at, ")");
    (void)n_words, (void)words, (void)why;
    int rc = sqlite3_declare_vtab(db, text);
    if (rc)
        return rc;
    struct table *t = mem_alloc(sizeof(*t));
    t->feed = f;
    *out = &t->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *table)
{
    free(table);
    return SQLITE_OK;
}

static int plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table, (void)info; /* there is one way only: all rows */
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
    struct cursor *c = mem_alloc(sizeof(*c));
    (void)table;
    *out = &c->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    free(cursor);
    return SQLITE_OK;
}

static int begin_rows(sqlite3_vtab_cursor *cursor, int plan_number, const char *plan_text, int n,
                      sqlite3_value **values)
{
    struct cursor *c = (struct cursor *)cursor;
    const struct insert_vtab *f = ((struct table *)cursor->pVtab)->feed;
    (void)plan_number, (void)plan_text, (void)n, (void)values;
    c->row = f->values;
    c->end = f->values + f->used;
    return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *cursor)
{
    ((struct cursor *)cursor)->row += ((struct table *)cursor->pVtab)->feed->width;
    return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *cursor)
{
    const struct cursor *c = (const struct cursor *)cursor;
    return c->row >= c->end;
}

static int get_column(sqlite3_vtab_cursor *cursor, sqlite3_context *to, int column)
{
    const struct value *v = &((struct cursor *)cursor)->row[column];
    const struct insert_vtab *f = ((struct table *)cursor->pVtab)->feed;
    switch (v->type) {
    case VALUE_INT:
        sqlite3_result_int64(to, v->number);
        break;
    case VALUE_REAL:
        sqlite3_result_double(to, v->real);
        break;
    case VALUE_TEXT:
        sqlite3_result_text(to, buf_str(&f->texts) + v->text, v->bytes, SQLITE_STATIC);
        break;
    case VALUE_NULL:
        break;
    }
    return SQLITE_OK;
}

static int get_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
    const struct cursor *c = (const struct cursor *)cursor;
    *rowid = c->end - c->row;
    return SQLITE_OK;
}

/* No xCreate: the table is there by its name, and nobody can make another. */
static const sqlite3_module module = {.xConnect = connect_table,
                                      .xDisconnect = disconnect_table,
                                      .xBestIndex = plan,
                                      .xOpen = open_cursor,
                                      .xClose = close_cursor,
                                      .xFilter = begin_rows,
                                      .xNext = next_row,
                                      .xEof = is_at_end,
                                      .xColumn = get_column,
                                      .xRowid = get_rowid};

int insert_vtab_create(struct insert_vtab **out, sqlite3 *db, const char *name, int width)
{
    char module_name[64];
    struct insert_vtab *f = mem_alloc(sizeof(*f) + (size_t)(INSERT_VTAB_ROWS * width) * sizeof(f->values[0]));
    f->width = width;
    *out = f;
    snprintf(module_name, sizeof(module_name), "feed_%s", name);
    return sqlite3_create_module_v2(db, module_name, &module, f, NULL);
}

void insert_vtab_release(struct insert_vtab *f)
{
    if (f)
        buf_release(&f->texts);
    free(f);
}

void insert_vtab_put_int(struct insert_vtab *f, int64_t value)
{
    f->values[f->used++] = (struct value){.type = VALUE_INT, .number = value};
}

void insert_vtab_put_real(struct insert_vtab *f, double value)
{
    f->values[f->used++] = (struct value){.type = VALUE_REAL, .real = value};
}

void insert_vtab_put_null(struct insert_vtab *f)
{
    f->values[f->used++] = (struct value){.type = VALUE_NULL};
}

void insert_vtab_put_text(struct insert_vtab *f, const char *text, int bytes)
{
    f->values[f->used++] = (struct value){.type = VALUE_TEXT, .bytes = bytes, .text = f->texts.len};
    buf_add(&f->texts, text, (size_t)bytes);
}

bool insert_vtab_is_empty(const struct insert_vtab *f)
{
    return !f->used;
}

bool insert_vtab_is_full(const struct insert_vtab *f)
{
    return f->used == f->width * INSERT_VTAB_ROWS;
}

void insert_vtab_clear(struct insert_vtab *f)
{
    f->used = 0;
    if (f->texts.len > TEXTS_KEPT)
        buf_release(&f->texts);
    else
        buf_reset(&f->texts);
}
