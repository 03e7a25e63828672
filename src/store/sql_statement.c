/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/sql_statement.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sql_prepare(struct sql *s, sqlite3 *db, const char *text)
{
    *s = (struct sql){0};
    return sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, &s->stmt, NULL);
}

void sql_finalize(struct sql *s)
{
    sqlite3_finalize(s->stmt);
    insert_vtab_release(s->feed);
    s->stmt = NULL;
    s->feed = NULL;
}

int sql_execute(sqlite3 *db, const char *text)
{
    return sqlite3_exec(db, text, NULL, NULL, NULL);
}

int sql_select_number(sqlite3 *db, const char *text, int64_t *answer)
{
    struct sql s;
    int rc = sql_prepare(&s, db, text);
    *answer = 0;
    if (rc)
        return rc;
    if (sql_row(&s))
        *answer = sqlite3_column_int64(s.stmt, 0);
    rc = s.rc;
    sql_finalize(&s);
    return rc;
}

static int io_error(struct error *e, const char *shown, int code)
{
    if (code == ENOSPC || code == EDQUOT || code == EFBIG)
        return error_set(e, code,
                         "%s: %s; what was recorded before stays readable: make room, or use -o elsewhere",
                         shown, strerror(code));
    return error_set(e, EIO, "%s: %s; check the disk it is on", shown, strerror(EIO));
}

int sql_error(struct error *e, sqlite3 *db, int rc, const char *shown)
{
    int code = db ? sqlite3_system_errno(db) : 0;
    if (!code)
        code = errno; /* not every part of SQLite keeps it */
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return error_set(
            e, ENOSPC,
            "%s: the disk is full; what was recorded before stays readable: make room, or use -o elsewhere",
            shown);
    case SQLITE_IOERR:
        /* A page that should be there and is not is damage, and no fault of the disk. */
        if (rc != SQLITE_IOERR_SHORT_READ)
            return io_error(e, shown, code);
        /* fall through */
    case SQLITE_CORRUPT:
    case SQLITE_TOOBIG:
    case SQLITE_ERROR:
    case SQLITE_SCHEMA:
        return error_set(e, EBADMSG, "%s is damaged; nothing can be read from it, record again", shown);
    case SQLITE_NOTADB:
        return error_set(e, EBADMSG,
                         "%s is not an allium recording; use a file written by 'allium run', 'allium "
                         "snapshot' or 'allium sys TOOL -o'",
                         shown);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(e, EBUSY, "%s is locked by another program; try again later", shown);
    case SQLITE_NOMEM:
        return error_set(e, ENOMEM, "%s: out of memory", shown);
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
        code = EACCES;
        /* fall through */
    case SQLITE_CANTOPEN:
        code = code ? code : EACCES;
        return error_set(e, code,
                         "cannot open %s: %s; check the permissions of the file and of its -wal file", shown,
                         strerror(code));
    default:
        return error_set(e, EIO, "%s: %s; please report this", shown, sqlite3_errstr(rc));
    }
}

char *sql_shown(const char *path)
{
    char *shown = mem_strdup(path);
    for (char *c = shown; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    return shown;
}

void sql_put_int(struct sql *s, int64_t value)
{
    if (s->feed)
        insert_vtab_put_int(s->feed, value);
    else
        sqlite3_bind_int64(s->stmt, ++s->column, value);
}

void sql_put_bits(struct sql *s, uint64_t value)
{
    sql_put_int(s, (int64_t)value);
}

void sql_put_count(struct sql *s, uint64_t value)
{
    sql_put_int(s, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

void sql_put_real(struct sql *s, double value)
{
    if (!(value > 0))
        value = 0;
    if (value > SQL_REAL_MAX)
        value = SQL_REAL_MAX;
    if (s->feed)
        insert_vtab_put_real(s->feed, value);
    else
        sqlite3_bind_double(s->stmt, ++s->column, value);
}

void sql_put_ref(struct sql *s, uint32_t value)
{
    if (value != UINT32_MAX)
        sql_put_int(s, value);
    else if (s->feed)
        insert_vtab_put_null(s->feed);
    else
        sqlite3_bind_null(s->stmt, ++s->column);
}

void sql_put_text(struct sql *s, const char *text, int bytes)
{
    if (s->feed)
        insert_vtab_put_text(s->feed, text, bytes);
    else
        sqlite3_bind_text(s->stmt, ++s->column, text, bytes, SQLITE_TRANSIENT);
}

int sql_run(struct sql *s)
{
    int rc = sqlite3_step(s->stmt);
    sqlite3_reset(s->stmt);
    s->column = 0;
    if (s->feed)
        insert_vtab_clear(s->feed);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

bool sql_row(struct sql *s)
{
    int rc = s->bad ? SQLITE_DONE : sqlite3_step(s->stmt);
    s->column = 0;
    if (rc == SQLITE_ROW)
        return true;
    s->rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    sqlite3_reset(s->stmt);
    return false;
}

/*
 * The next column. Its value is unprotected, as SQLite calls it: good until the next step, and for one thread. Asking
 * it for its type and number costs a third of what asking the statement twice does.
 */
static inline sqlite3_value *next_value(struct sql *s)
{
    int at = s->column++;
    return s->values ? s->values[at] : sqlite3_column_value(s->stmt, at);
}

bool sql_is_null(const struct sql *s)
{
    return s->values ? sqlite3_value_type(s->values[s->column]) == SQLITE_NULL
                     : sqlite3_column_type(s->stmt, s->column) == SQLITE_NULL;
}

int64_t sql_get_int(struct sql *s, int64_t low, int64_t high)
{
    sqlite3_value *v = next_value(s);
    int64_t value = sqlite3_value_int64(v);
    if (sqlite3_value_type(v) == SQLITE_INTEGER && value >= low && value <= high)
        return value;
    s->bad = true;
    return low;
}

uint64_t sql_get_bits(struct sql *s)
{
    return (uint64_t)sql_get_int(s, INT64_MIN, INT64_MAX);
}

uint64_t sql_get_count(struct sql *s)
{
    return (uint64_t)sql_get_int(s, 0, INT64_MAX);
}

uint64_t sql_get_count_or_none(struct sql *s)
{
    if (!sql_is_null(s))
        return sql_get_count(s);
    s->column++;
    return UINT64_MAX;
}

double sql_get_real(struct sql *s)
{
    sqlite3_value *v = next_value(s);
    int type = sqlite3_value_type(v);
    double value = sqlite3_value_double(v);
    if (type != SQLITE_FLOAT && type != SQLITE_INTEGER)
        s->bad = true;
    if (!(value > 0))
        return 0;
    return value < SQL_REAL_MAX ? value : SQL_REAL_MAX;
}

uint32_t sql_get_index(struct sql *s, uint64_t limit)
{
    if (limit > UINT32_MAX)
        limit = UINT32_MAX;
    return (uint32_t)sql_get_int(s, 0, (int64_t)limit - 1);
}

uint32_t sql_get_index_or_none(struct sql *s, uint64_t limit)
{
    if (!sql_is_null(s))
        return sql_get_index(s, limit);
    s->column++;
    return UINT32_MAX;
}

const char *sql_get_text(struct sql *s)
{
    int at = s->column++;
    const char *text = NULL;
    if (sqlite3_column_type(s->stmt, at) == SQLITE_TEXT)
        text = (const char *)sqlite3_column_text(s->stmt, at);
    s->bad |= !text;
    return text ? text : "";
}
