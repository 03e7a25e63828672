/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/table_rows.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "model/profile/estimate.h"
#include "store/profile_load.h"
#include "store/recording.h"
#include "store/recording_reader.h"

#define NAME_MOST 48u
#define HEAD      "(\n  taken_ns INTEGER"

/* An estimate takes four columns, of which the last one has the numbers that the others are made of. */
#define ESTIMATE_COLUMNS 4
#define LOW              "_low"
#define HIGH             "_high"
#define TERMS            "_terms"

static const char *type_of(const struct table_column *c)
{
    switch (c->type) {
    case TABLE_TEXT:
    case TABLE_LINES:
    case TABLE_HISTOGRAM:
        return "TEXT";
    case TABLE_REAL:
    case TABLE_ESTIMATE:
        return "REAL";
    default:
        return "INTEGER";
    }
}

/* Bytes of the name at `text`: lower case, digits and _, 0: it is none. */
static size_t name_length(const char *text)
{
    size_t n = 0;
    while (islower((unsigned char)text[n]) || (n && (isdigit((unsigned char)text[n]) || text[n] == '_')))
        n++;
    return n <= NAME_MOST ? n : 0;
}

static size_t type_length(const char *text)
{
    static const char *const types[] = {"INTEGER", "REAL", "TEXT"};
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (!strncmp(text, types[i], strlen(types[i])))
            return strlen(types[i]);
    return 0;
}

bool rows_is_ours(const char *name, const char *sql)
{
    struct buf begin = BUF_INIT;
    size_t len = name_length(name);
    bool known = !strncmp(name, "sys_", 4) || !strncmp(name, "account_", 8) || !strncmp(name, "trace_", 6);
    buf_printf(&begin, "CREATE TABLE %s" HEAD, name);
    bool ours = known && len && !name[len] && !strncmp(sql, buf_str(&begin), begin.len);
    const char *at = ours ? sql + begin.len : "";
    buf_release(&begin);
    while (ours && !strncmp(at, ", \"", 3)) { /* quoted: "order" and "limit" are words of SQL */
        size_t column = name_length(at += 3);
        at += column;
        ours = column && !strncmp(at, "\" ", 2) && (column = type_length(at += 2));
        at += column;
    }
    return ours && !strcmp(at, "\n)");
}

static void add_column(struct buf *b, const struct table_column *c, const char *suffix, const char *type)
{
    buf_addstr(b, ", \"");
    table_add_key(b, c);
    buf_printf(b, "%s\" %s", suffix, type);
}

/* Returns how many there are. */
static int add_columns(struct buf *b, const struct table_column *c)
{
    add_column(b, c, "", type_of(c));
    if (c->type != TABLE_ESTIMATE)
        return 1;
    add_column(b, c, LOW, "REAL");
    add_column(b, c, HIGH, "REAL");
    add_column(b, c, TERMS, "TEXT");
    return ESTIMATE_COLUMNS;
}

int rows_create(struct rows_writer *w, sqlite3 *db, const char *name, const struct table *like)
{
    struct buf b = BUF_INIT;
    struct insert_vtab *feed = NULL;
    *w = (struct rows_writer){.name = mem_strdup(name)};
    buf_printf(&b, "CREATE TABLE %s" HEAD, name);
    int n = 1;
    for (uint32_t i = 0; i < like->n_columns; i++) {
        if (table_hides(like, i))
            continue;
        n += add_columns(&b, &like->columns[i]);
    }
    buf_addstr(&b, "\n)");
    int rc = sql_execute(db, buf_str(&b));
    rc = rc ? rc : insert_vtab_create(&feed, db, name, n);
    buf_reset(&b);
    buf_printf(&b, "INSERT INTO %s SELECT * FROM feed_%s", name, name);
    rc = rc ? rc : sql_prepare(&w->put, db, buf_str(&b));
    w->put.feed = feed;
    buf_release(&b);
    return rc;
}

void rows_finalize(struct rows_writer *w)
{
    sql_finalize(&w->put);
    free(w->name);
    w->name = NULL;
}

/* "10:3 12:44": slots that are not empty, and what they count. */
static void put_histogram(struct insert_vtab *f, const uint64_t *slots)
{
    struct buf b = BUF_INIT;
    for (uint32_t i = 0; i < TABLE_SLOTS; i++)
        if (slots[i])
            buf_printf(&b, "%s%" PRIu32 ":%" PRIu64, b.len ? " " : "", i, slots[i]);
    insert_vtab_put_text(f, buf_str(&b), (int)b.len);
    buf_release(&b);
}

/* Whatever else the text says is passed over. */
static void get_histogram(struct table *t, uint32_t column, const char *text)
{
    uint64_t slots[TABLE_SLOTS] = {0};
    uint32_t slot;
    uint64_t count;
    int len;
    while (sscanf(text, "%2" SCNu32 ":%20" SCNu64 "%n", &slot, &count, &len) == 2) {
        if (slot < TABLE_SLOTS)
            slots[slot] = count;
        text += len;
    }
    table_histogram(t, column, slots, TABLE_SLOTS);
}

#define TERMS_MOST 11

/* The numbers of an estimate that are no counts. */
static void terms_of(struct estimate *e, double *terms[static TERMS_MOST])
{
    double *const all[TERMS_MOST] = {&e->value,          &e->seen,      &e->variance,      &e->grain,
                                     &e->log_weight,     &e->next.mean, &e->next.variance, &e->first.mean,
                                     &e->first.variance, &e->smallest,  &e->largest};
    memcpy(terms, all, sizeof(all));
}

static void put_estimate(struct insert_vtab *f, const struct estimate *value)
{
    struct estimate e = *value;
    const struct interval i = estimate_interval(value);
    double *terms[TERMS_MOST];
    struct buf b = BUF_INIT;
    terms_of(&e, terms);
    buf_printf(&b, "%" PRIu64 " %" PRIu64, e.samples, e.exact);
    for (int t = 0; t < TERMS_MOST; t++)
        buf_printf(&b, " %.17g", *terms[t]);
    insert_vtab_put_real(f, e.value);
    insert_vtab_put_real(f, i.low);
    insert_vtab_put_real(f, i.high);
    insert_vtab_put_text(f, buf_str(&b), (int)b.len);
    buf_release(&b);
}

/* A text that is not one of ours leaves the value unknown. */
static void get_estimate(struct table *t, uint32_t column, const char *text)
{
    struct estimate e = {0};
    double *terms[TERMS_MOST];
    int len = 0;
    terms_of(&e, terms);
    if (sscanf(text, "%20" SCNu64 " %20" SCNu64 "%n", &e.samples, &e.exact, &len) != 2)
        return;
    for (int i = 0; i < TERMS_MOST; i++) {
        char *end;
        text += len;
        *terms[i] = strtod(text, &end);
        len = (int)(end - text);
        if (!len || !isfinite(*terms[i]) || *terms[i] < 0)
            return;
    }
    table_estimate(t, column, &e);
}

static void put_value(struct insert_vtab *f, const struct table *t, uint32_t row, uint32_t column)
{
    const struct table_value *v = table_at(t, row, column);
    if (!v->known) {
        for (int n = t->columns[column].type == TABLE_ESTIMATE ? ESTIMATE_COLUMNS : 1; n; n--)
            insert_vtab_put_null(f);
        return;
    }
    switch (t->columns[column].type) {
    case TABLE_TEXT:
    case TABLE_LINES:
        insert_vtab_put_text(f, v->text, (int)strnlen(v->text, RECORDING_TEXT_MAX));
        break;
    case TABLE_HISTOGRAM:
        put_histogram(f, v->slots);
        break;
    case TABLE_REAL:
        insert_vtab_put_real(f, v->real);
        break;
    case TABLE_ESTIMATE:
        put_estimate(f, v->estimate);
        break;
    case TABLE_FLAG:
        insert_vtab_put_int(f, v->flag);
        break;
    case TABLE_SIGNED:
        insert_vtab_put_int(f, v->negative_too);
        break;
    default:
        insert_vtab_put_int(f, (int64_t)v->whole);
    }
}

void rows_put(struct rows_writer *w, const struct table *t, uint32_t row, uint64_t time_ns)
{
    insert_vtab_put_int(w->put.feed, (int64_t)time_ns);
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (!table_hides(t, i))
            put_value(w->put.feed, t, row, i);
}

/* The columns of `t`, in their order, of those that were recorded; the others are hidden. */
static int prepare_scan(struct sql *s, struct reader *r, const char *name, struct table *t)
{
    struct buf b = BUF_INIT;
    int rc = SQLITE_OK;
    buf_addstr(&b, "SELECT taken_ns");
    for (uint32_t i = 0; i < t->n_columns && !rc; i++) {
        struct buf key = BUF_INIT, ask = BUF_INIT;
        int64_t has = 0;
        table_add_key(&key, &t->columns[i]);
        buf_addstr(&key, t->columns[i].type == TABLE_ESTIMATE ? TERMS : "");
        buf_printf(&ask, "SELECT count(*) FROM pragma_table_info('%s') WHERE name = '%s'", name,
                   buf_str(&key));
        rc = sql_select_number(r->db, buf_str(&ask), &has);
        t->hidden |= (uint64_t)(!has && i < 64) << (i & 63);
        buf_printf(&b, has ? ", \"%s\"" : ", NULL", buf_str(&key));
        buf_release(&key);
        buf_release(&ask);
    }
    buf_printf(&b, " FROM %s ORDER BY rowid", name);
    rc = rc ? rc : sql_prepare(s, r->db, buf_str(&b));
    buf_release(&b);
    return rc;
}

static void get_value(struct sqlite3_stmt *stmt, struct table *t, uint32_t column)
{
    int at = (int)column + 1, type = sqlite3_column_type(stmt, at);
    enum table_type want = t->columns[column].type;
    if (type == SQLITE_NULL)
        return;
    if (want == TABLE_TEXT || want == TABLE_LINES)
        table_text(t, column, (const char *)sqlite3_column_text(stmt, at));
    else if (want == TABLE_HISTOGRAM && type == SQLITE_TEXT)
        get_histogram(t, column, (const char *)sqlite3_column_text(stmt, at));
    else if (want == TABLE_ESTIMATE && type == SQLITE_TEXT)
        get_estimate(t, column, (const char *)sqlite3_column_text(stmt, at));
    else if (want == TABLE_REAL)
        table_real(t, column, sqlite3_column_double(stmt, at));
    else if (want == TABLE_FLAG)
        table_flag(t, column, sqlite3_column_int64(stmt, at) != 0);
    else if (want == TABLE_SIGNED)
        table_signed(t, column, sqlite3_column_int64(stmt, at));
    else if (want == TABLE_WHOLE || want == TABLE_ADDRESS)
        table_whole(t, column, (uint64_t)sqlite3_column_int64(stmt, at));
}

/* Of the kernel's files: a recording has them from its beginning. */
#define STATE_ROWS "sys_state"

/* As commands have it: `kmem` for sys_kmem. */
static const char *without_prefix(const char *table)
{
    return table + (strncmp(table, "sys_", 4) ? 0 : 4);
}

/* Which rows there are instead; a recording that was cut off before its first report has none. */
static int say_none(struct reader *r, const char *name, struct error *e)
{
    struct sql s = {0};
    int bad = 0;
    char *other = NULL;
    if (!sql_prepare(&s, r->db, ROWS_TABLES_QUERY))
        while (!other && sql_row(&s)) {
            const char *table = sql_get_text(&s); /* until the next row */
            other = table && strcmp(table, STATE_ROWS) != 0 ? mem_strdup(table) : NULL;
        }
    if (other)
        bad = error_set(e, ENODATA, "%s has no rows of %s, only of %s", r->shown, without_prefix(name),
                        without_prefix(other));
    else
        bad = error_set(
            e, ENODATA,
            "%s has no rows of %s: it was recorded with another command, or ended before the first report",
            r->shown, without_prefix(name));
    free(other);
    sql_finalize(&s);
    return bad;
}

int reader_load_rows(struct reader *r, const char *name, struct table *t,
                     void (*each)(void *arg, uint64_t time_ns), void *arg, struct error *e)
{
    struct sql s = {0};
    int64_t has = 0;
    struct buf ask = BUF_INIT;
    buf_printf(&ask, "SELECT count(*) FROM sqlite_schema WHERE name = '%s'", name);
    int rc = sql_select_number(r->db, buf_str(&ask), &has), bad = 0;
    rc = rc || !has ? rc : prepare_scan(&s, r, name, t);
    uint64_t last = 0;
    while (!rc && has && (rc = sqlite3_step(s.stmt)) == SQLITE_ROW) {
        uint64_t time_ns = (uint64_t)sqlite3_column_int64(s.stmt, 0);
        if (last && time_ns != last)
            each(arg, last);
        last = time_ns;
        table_row(t);
        for (uint32_t i = 0; i < t->n_columns; i++)
            get_value(s.stmt, t, i);
        rc = SQLITE_OK;
    }
    rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    if (last && !rc)
        each(arg, last);
    if (rc)
        bad = sql_error(e, r->db, rc, r->shown);
    else if (!has)
        bad = say_none(r, name, e);
    sql_finalize(&s);
    buf_release(&ask);
    return bad;
}

int recording_load_rows(const char *path, const char *name, struct table *t,
                        void (*each)(void *arg, uint64_t time_ns), void *arg, struct error *e)
{
    struct reader r;
    int bad = reader_open(&r, path, e);
    bad = bad ? bad : reader_load_rows(&r, name, t, each, arg, e);
    reader_close(&r);
    return bad;
}
