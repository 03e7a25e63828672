/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/reader.h"

#include <errno.h>
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
 * the rows are numbered without a gap, and row.c sees to it.)
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
        if (sqlite3_column_type(s->row.stmt, i) != SQLITE_INTEGER)
            return false;
        key[i] = sqlite3_column_int64(s->row.stmt, i);
    }
    bool rises = !s->n || key[0] > s->last[0] || (key[0] == s->last[0] && key[1] > s->last[1]);
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
