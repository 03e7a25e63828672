/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/recording_reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FACTS_MAX 4096

void reader_scan(struct scan *s, struct reader *r, enum schema_table table)
{
    reader_scan_some(s, r, table, "*", "");
}

void reader_scan_some(struct scan *s, struct reader *r, enum schema_table table, const char *columns,
                      const char *where)
{
    *s = (struct scan){.r = r, .table = table};
    s->row.rc = schema_prepare_scan(&s->row, r->db, table, columns, where);
}

void reader_scan_again(struct scan *s, int64_t parameter)
{
    if (s->row.rc)
        return;
    s->n = 0;
    sqlite3_reset(s->row.stmt);
    s->row.rc = sqlite3_bind_int64(s->row.stmt, 1, parameter);
}

/*
 * Keys rise: a damaged tree whose branches meet again would otherwise be walked for ever. (Where the key is one number,
 * the rows are numbered without a gap, and profile_rows.c sees to it.)
 */
static bool key_rises(struct scan *s)
{
    int64_t key[2];
    switch (s->table) {
    case SCHEMA_META:
        return s->n < FACTS_MAX;
    case SCHEMA_MAPPING:
    case SCHEMA_LINE:
    case SCHEMA_SAMPLE:
    case SCHEMA_FREE:
    case SCHEMA_POINT:
    case SCHEMA_MOMENT_CELL:
        break;
    default:
        return true;
    }
    for (int i = 0; i < 2; i++) {
        sqlite3_value *v = s->row.values ? s->row.values[i] : sqlite3_column_value(s->row.stmt, i);
        if (sqlite3_value_type(v) != SQLITE_INTEGER)
            return false;
        key[i] = sqlite3_value_int64(v);
    }
    const int64_t *low = s->falls ? key : s->last, *high = s->falls ? s->last : key;
    bool rises = !s->n || high[0] > low[0] || (high[0] == low[0] && high[1] > low[1]);
    memcpy(s->last, key, sizeof(key));
    return rises;
}

bool reader_scan_row(struct scan *s)
{
    if (s->row.rc || !sql_row(&s->row))
        return false;
    if (!key_rises(s))
        s->row.bad = true;
    s->n++;
    return !s->row.bad;
}

const char *reader_scan_text(struct scan *s)
{
    uint64_t bytes = (uint64_t)sqlite3_column_bytes(s->row.stmt, s->row.column);
    const char *text = sql_get_text(&s->row);
    s->row.bad |= bytes > s->r->text_left_bytes;
    s->r->text_left_bytes -= s->row.bad ? 0 : bytes;
    return s->row.bad ? "" : text;
}

int reader_scan_end(struct scan *s, struct error *e)
{
    int rc = 0;
    if (s->row.rc)
        rc = sql_error(e, s->r->db, s->row.rc, s->r->shown);
    else if (s->row.bad)
        rc = error_set(e, EBADMSG, "%s is damaged (table %s); nothing can be read from it, record again",
                       s->r->shown, schema_table_name(s->table));
    sql_finalize(&s->row);
    return rc;
}

/* ---- each row, handed over ---- */

#define TAKE  "allium_take"
#define WANTS "allium_wants"

static void begin_row(struct scan *s, sqlite3_value **values)
{
    s->row.values = values;
    s->row.column = 0;
    s->row.bad |= !key_rises(s);
    s->n++;
}

/* What is bad ends the statement; else a result of false means that the row needs no further look. */
static void end_row(struct scan *s, sqlite3_context *context, bool is)
{
    s->row.values = NULL;
    if (s->row.bad)
        sqlite3_result_error(context, "bad", -1);
    else
        sqlite3_result_int(context, is);
}

static struct scan *scan_of(sqlite3_context *context)
{
    struct scan *s = ((const struct reader *)sqlite3_user_data(context))->each;
    if (!s)
        sqlite3_result_error(context, "no walk is under way", -1);
    return s;
}

static void enter_wants(sqlite3_context *context, int n, sqlite3_value **values)
{
    struct scan *s = scan_of(context);
    (void)n;
    if (!s)
        return;
    begin_row(s, values);
    bool wants = !s->row.bad && s->wants(s->arg, s);
    end_row(s, context, wants);
}

static void enter_take(sqlite3_context *context, int n, sqlite3_value **values)
{
    struct scan *s = scan_of(context);
    (void)n;
    if (!s)
        return;
    if (!s->wants)
        begin_row(s, values);
    s->row.values = values;
    s->row.column = 0;
    if (!s->row.bad)
        s->take(s->arg, s);
    end_row(s, context, false);
}

static int prepare_each(struct scan *s, const struct each *of)
{
    sqlite3 *db = s->r->db;
    char names[SCHEMA_COLUMNS_BYTES], where[2 * SCHEMA_COLUMNS_BYTES];
    const char *columns = of->columns ? of->columns : names, *narrowed = of->where ? of->where : "1";
    int rc = of->columns ? SQLITE_OK : schema_columns(db, of->table, names),
        how = SQLITE_UTF8 | SQLITE_DIRECTONLY;
    if (of->wants)
        snprintf(where, sizeof(where), "WHERE %s AND CASE WHEN " WANTS "(%s) THEN " TAKE "(%s) END", narrowed,
                 schema_table_key(of->table), columns);
    else
        snprintf(where, sizeof(where), "WHERE %s AND " TAKE "(%s)", narrowed, columns);
    rc = rc ? rc : sqlite3_create_function_v2(db, TAKE, -1, how, s->r, enter_take, NULL, NULL, NULL);
    rc = rc ? rc : sqlite3_create_function_v2(db, WANTS, 2, how, s->r, enter_wants, NULL, NULL, NULL);
    return rc ? rc : schema_prepare_walk(&s->row, db, of->table, where, of->falls);
}

int reader_each(struct reader *r, const struct each *of, struct error *e)
{
    struct scan s = {
        .r = r, .table = of->table, .falls = of->falls, .wants = of->wants, .take = of->take, .arg = of->arg};
    s.row.rc = prepare_each(&s, of);
    if (!s.row.rc && of->where)
        s.row.rc = sqlite3_bind_int64(s.row.stmt, 1, of->parameter);
    r->each = &s;
    while (!s.row.rc && sql_row(&s.row)) /* there is none: take() is false */
        ;
    r->each = NULL;
    if (s.row.bad) /* and not what SQLite makes of that */
        s.row.rc = SQLITE_OK;
    return reader_scan_end(&s, e);
}
