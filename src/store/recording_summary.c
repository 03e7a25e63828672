/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/recording.h"
#include "store/recording_reader.h"

#include <stdio.h>
#include <string.h>

static int read_facts(struct reader *r, struct recording_summary *sum, struct error *e)
{
    struct scan s;
    reader_scan(&s, r, SCHEMA_META);
    while (reader_scan_row(&s)) {
        const char *key = reader_scan_text(&s);
        struct recording_fact *fact = vec_push(&sum->facts);
        fact->key = mem_strdup(key);
        if (sqlite3_column_type(s.row.stmt, s.row.column) == SQLITE_TEXT)
            fact->text = mem_strdup(reader_scan_text(&s));
        else
            fact->number = sqlite3_column_int64(s.row.stmt, s.row.column);
    }
    return reader_scan_end(&s, e);
}

static int read_images(struct reader *r, struct recording_summary *sum, struct error *e)
{
    struct scan s;
    struct row_limits limits = {.strings = UINT32_MAX};
    reader_scan(&s, r, SCHEMA_IMAGE);
    while (reader_scan_row(&s)) {
        struct profile_image it = {0};
        row_image(&s.row, &limits, limits.images++, &it);
        if (it.began_ns && (!sum->first_ns || it.began_ns < sum->first_ns))
            sum->first_ns = it.began_ns;
        if (it.taken_ns > sum->last_ns)
            sum->last_ns = it.taken_ns;
    }
    sum->images = (uint32_t)limits.images;
    return reader_scan_end(&s, e);
}

/* While a recording is made, the newest of these rows may be later than all rows of images. */
static int read_latest(struct reader *r, struct recording_summary *sum, const char *table, const char *column,
                       struct error *e)
{
    int64_t has = 0, last = 0;
    char sql[128];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM sqlite_schema WHERE name = '%s'", table);
    int rc = sql_select_number(r->db, sql, &has);
    snprintf(sql, sizeof(sql), "SELECT max(%s) FROM %s", column, table);
    if (!rc && has)
        rc = sql_select_number(r->db, sql, &last);
    if (last > 0 && (uint64_t)last > sum->last_ns)
        sum->last_ns = (uint64_t)last;
    return rc ? sql_error(e, r->db, rc, r->shown) : 0;
}

static void set_time(const struct recording_summary *s, const char *key, uint64_t *ns)
{
    int64_t number;
    if (recording_number(s, key, &number) && number > 0)
        *ns = (uint64_t)number;
}

int reader_summarize(struct reader *r, struct recording_summary *s, struct error *e)
{
    int64_t dropped = 0, ended;
    s->bytes = r->text_left_bytes = r->bytes;
    int rc = read_facts(r, s, e);
    rc = rc ? rc : read_images(r, s, e);
    rc = rc ? rc : read_latest(r, s, "account_process", "taken_ns", e);
    if (!rc && !recording_number(s, RECORDING_ENDED, &ended))
        rc = read_latest(r, s, "point", "time_ns", e);
    if (rc)
        return rc;
    set_time(s, RECORDING_STARTED, &s->first_ns);
    set_time(s, RECORDING_ENDED, &s->last_ns);
    if (s->last_ns < s->first_ns)
        s->last_ns = s->first_ns;
    if (recording_number(s, SCHEMA_DROPPED, &dropped) && dropped > 0)
        s->images_dropped = (uint64_t)dropped;
    return 0;
}

int recording_summarize(struct recording_summary *s, const char *path, struct error *e)
{
    struct reader r;
    *s = (struct recording_summary){0};
    int rc = reader_open(&r, path, e);
    if (!rc)
        rc = reader_summarize(&r, s, e);
    reader_close(&r);
    if (rc)
        recording_summary_release(s);
    return rc;
}

void recording_summary_release(struct recording_summary *s)
{
    vec_each (struct recording_fact, fact, &s->facts) {
        free(fact->key);
        free(fact->text);
    }
    vec_release(&s->facts);
    *s = (struct recording_summary){0};
}

static const struct recording_fact *find(const struct recording_summary *s, const char *key)
{
    vec_each (const struct recording_fact, fact, &s->facts)
        if (!strcmp(fact->key, key))
            return fact;
    return NULL;
}

const char *recording_text(const struct recording_summary *s, const char *key)
{
    const struct recording_fact *fact = find(s, key);
    return fact ? fact->text : NULL;
}

const char *recording_accounts(const struct recording_summary *s, size_t n)
{
    vec_each (const struct recording_fact, fact, &s->facts)
        if (!strncmp(fact->key, RECORDING_ACCOUNTS, strlen(RECORDING_ACCOUNTS)) && !n--)
            return fact->key + strlen(RECORDING_ACCOUNTS);
    return NULL;
}

bool recording_number(const struct recording_summary *s, const char *key, int64_t *number)
{
    const struct recording_fact *fact = find(s, key);
    if (!fact || fact->text)
        return false;
    *number = fact->number;
    return true;
}

int recording_times(const char *path, uint64_t *first_ns, uint64_t *last_ns, struct error *e)
{
    struct recording_summary s;
    int rc = recording_summarize(&s, path, e);
    *first_ns = s.first_ns;
    *last_ns = s.last_ns;
    recording_summary_release(&s);
    return rc;
}
