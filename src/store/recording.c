/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/recording_writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BUSY_MS       5000
#define CLOSE_STEP_MS 20
#define PAGE_BYTES    4096
#define STRING_(x)    #x
#define STRING(x)     STRING_(x)
#define WAL_MODE      "wal"
#define END_MODE      "memory"

static const char *const texts[WRITER_STATEMENTS] = {
    [WRITER_DELETE_SAMPLE] = "DELETE FROM live_sample WHERE image = ? AND serial = ?",
    [WRITER_DELETE_FREE] = "DELETE FROM recent_free WHERE image = ? AND serial = ?",
    [WRITER_DELETE_POINT] = "DELETE FROM point WHERE image = ? AND time_ns = ?",
    [WRITER_MERGE_MOMENT] = "UPDATE OR IGNORE moment_cell SET moment = ? WHERE moment = ?",
    [WRITER_DELETE_MOMENT] = "DELETE FROM moment_cell WHERE moment = ?",
    [WRITER_NO_MOMENT] = "UPDATE point SET moment = NULL WHERE image = ? AND time_ns = ?",
};

static void fail(struct recording *r, int rc)
{
    if (r->failed || rc == SQLITE_OK)
        return;
    r->failed = sql_error(&r->why, r->db, rc, r->shown);
    if (!sqlite3_get_autocommit(r->db))
        sql_execute(r->db, "ROLLBACK");
    r->began = false;
}

/* Runs what has rows waiting. */
static void flush(struct recording *r)
{
    for (int i = 0; i < SCHEMA_TABLES && !r->failed; i++) {
        struct sql *s = &r->statements[i];
        if (s->feed && !insert_vtab_is_empty(s->feed))
            fail(r, sql_run(s));
    }
    vec_each (struct rows_writer, w, &r->rows)
        if (!r->failed && w->put.feed && !insert_vtab_is_empty(w->put.feed))
            fail(r, sql_run(&w->put));
}

struct sql *writer_statement(struct recording *r, int statement)
{
    struct sql *s = &r->statements[statement];
    if (statement >= WRITER_MERGE_MOMENT)
        flush(r); /* it looks at rows; those that are deleted by their key never wait */
    if (r->failed) {
        s->column = 0;
        if (s->feed)
            insert_vtab_clear(s->feed);
        return s;
    }
    if (!s->stmt)
        fail(r, statement < SCHEMA_TABLES ? schema_prepare_put(s, r->db, (enum schema_table)statement)
                                          : sql_prepare(s, r->db, texts[statement]));
    if (!r->failed && !r->began) {
        fail(r, sql_execute(r->db, "BEGIN IMMEDIATE"));
        r->began = !r->failed;
    }
    return s;
}

void writer_run(struct recording *r, struct sql *s)
{
    if (!r->failed && (!s->feed || insert_vtab_is_full(s->feed)))
        fail(r, sql_run(s));
}

int writer_failure(const struct recording *r, struct error *e)
{
    return r->failed ? error_set(e, -r->failed, "%s", r->why.text) : 0;
}

int writer_result(struct recording *r, struct error *e)
{
    flush(r);
    return writer_failure(r, e);
}

static struct sql *put_fact(struct recording *r, const char *key)
{
    struct sql *s = writer_statement(r, SCHEMA_META);
    sql_put_text(s, key, (int)strlen(key));
    return s;
}

void writer_put_number(struct recording *r, const char *key, int64_t number)
{
    struct sql *s = put_fact(r, key);
    sql_put_int(s, number);
    writer_run(r, s);
}

int recording_set_number(struct recording *r, const char *key, int64_t number, struct error *e)
{
    writer_put_number(r, key, number);
    return writer_result(r, e);
}

int recording_set_text(struct recording *r, const char *key, const char *text, struct error *e)
{
    struct sql *s = put_fact(r, key);
    sql_put_text(s, text, (int)strnlen(text, RECORDING_TEXT_MAX));
    writer_run(r, s);
    return writer_result(r, e);
}

int recording_drop_image(struct recording *r, double peak_bytes, struct error *e)
{
    r->images_dropped++;
    if (peak_bytes > 0)
        r->images_dropped_peak_bytes += peak_bytes;
    writer_put_number(r, SCHEMA_DROPPED, (int64_t)r->images_dropped);
    struct sql *s = put_fact(r, SCHEMA_DROPPED_PEAK);
    sql_put_real(s, r->images_dropped_peak_bytes);
    writer_run(r, s);
    return writer_result(r, e);
}

int recording_put_unobserved(struct recording *r, const char *program, const char *reason, uint64_t processes,
                             struct error *e)
{
    struct profile_unobserved it = {intern_text(r, program), intern_text(r, reason), processes};
    struct sql *s = writer_statement(r, SCHEMA_UNOBSERVED);
    row_unobserved(s, NULL, &it);
    writer_run(r, s);
    return writer_result(r, e);
}

/* The writer of this name, in a transaction; NULL: a failure. */
static struct rows_writer *rows_writer(struct recording *r, const char *name, const struct table *like)
{
    writer_statement(r, SCHEMA_META); /* for the transaction that it begins */
    vec_each (struct rows_writer, w, &r->rows)
        if (!strcmp(w->name, name))
            return r->failed ? NULL : w;
    if (r->failed)
        return NULL;
    struct rows_writer *w = vec_push(&r->rows);
    fail(r, rows_create(w, r->db, name, like));
    return r->failed ? NULL : w;
}

int recording_put_rows(struct recording *r, const char *name, const struct table *t, uint64_t time_ns,
                       struct error *e)
{
    struct rows_writer *w = rows_writer(r, name, t);
    for (uint32_t row = 0; w && row < table_rows(t) && !r->failed; row++) {
        rows_put(w, t, row, time_ns);
        if (insert_vtab_is_full(w->put.feed))
            fail(r, sql_run(&w->put));
    }
    return writer_failure(r, e);
}

int recording_commit(struct recording *r, struct error *e)
{
    flush(r);
    if (r->began && !r->failed) {
        fail(r, sql_execute(r->db, "COMMIT"));
        r->began = false;
    }
    return writer_result(r, e);
}

/* SQLite answers with the mode it is in now, which is the old one when it could not change: no error. */
static bool change_mode(sqlite3 *db, const char *mode, int *rc)
{
    struct sql s;
    char text[64];
    bool changed = false;
    snprintf(text, sizeof(text), "PRAGMA journal_mode = %s", mode);
    *rc = sql_prepare(&s, db, text);
    if (*rc)
        return false;
    if (sql_row(&s))
        changed = !strcmp(sql_get_text(&s), mode);
    *rc = s.rc;
    sql_finalize(&s);
    return changed;
}

static int open_database(struct recording *r)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW;
    int rc = sqlite3_open_v2(r->path, &r->db, flags, NULL);
    if (rc)
        return rc;
    sqlite3_extended_result_codes(r->db, 1);
    sqlite3_busy_timeout(r->db, BUSY_MS);
    return sql_execute(r->db, "PRAGMA page_size = " STRING(PAGE_BYTES) ";"
                                                                       "PRAGMA encoding = 'UTF-8';"
                                                                       "PRAGMA mmap_size = 0;"
                                                                       "PRAGMA cache_size = -16000;"
                                                                       "PRAGMA secure_delete = OFF;"
                                                                       "PRAGMA temp_store = MEMORY;"
                                                                       "PRAGMA synchronous = NORMAL;"
                                                                       "PRAGMA journal_mode = " END_MODE);
}

/* In one transaction: whoever finds the file finds a recording. */
static int make_tables(struct recording *r, struct error *e)
{
    char text[128];
    snprintf(text, sizeof(text), "BEGIN; PRAGMA application_id = %d; PRAGMA user_version = %d",
             SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
    int rc = sql_execute(r->db, text);
    rc = rc ? rc : schema_create(r->db);
    if (rc)
        return sql_error(e, r->db, rc, r->shown);
    r->began = true;
    intern_begin(r);
    return recording_commit(r, e);
}

static int begin_wal(struct recording *r, struct error *e)
{
    int rc;
    int64_t tables;
    if (!change_mode(r->db, WAL_MODE, &rc))
        return rc ? sql_error(e, r->db, rc, r->shown)
                  : error_set(e, EOPNOTSUPP,
                              "%s: its file system has no shared memory; use -o on a local disk", r->shown);
    sqlite3_wal_autocheckpoint(r->db, RECORDING_WAL_BYTES / PAGE_BYTES);
    rc = sql_select_number(r->db, "SELECT count(*) FROM sqlite_schema", &tables); /* now the -wal is there */
    if (rc)
        return sql_error(e, r->db, rc, r->shown);
    if (!writer_file_unmoved(r->path, r->guard) || !writer_neighbours_ours(r->path))
        return error_set(e, EPERM,
                         "%s: another user changed files in its folder; use -o in a folder of your own",
                         r->shown);
    return 0;
}

static void finalize_rows(struct recording *r)
{
    vec_each (struct rows_writer, w, &r->rows)
        rows_finalize(w);
    vec_release(&r->rows);
}

static void release(struct recording *r)
{
    for (size_t i = 0; i < WRITER_STATEMENTS; i++)
        sql_finalize(&r->statements[i]);
    finalize_rows(r);
    sqlite3_close(r->db);
    if (r->guard >= 0)
        close(r->guard);
    vec_each (struct writer_image *, i, &r->images)
        writer_image_free(*i);
    vec_release(&r->images);
    vec_release(&r->named);
    map_release(&r->strings);
    map_release(&r->modules);
    map_release(&r->locations);
    map_release(&r->stacks);
    map_release(&r->image_ids);
    free(r->path);
    free(r->shown);
    free(r);
}

int recording_create(struct recording **out, const char *path, bool force, struct error *e)
{
    struct recording *r = mem_alloc(sizeof(*r));
    r->shown = sql_shown(path);
    *out = NULL;
    int rc = writer_create_file(path, force, &r->path, &r->guard, e);
    if (rc) {
        release(r);
        return rc;
    }
    rc = open_database(r);
    if (rc)
        rc = sql_error(e, r->db, rc, r->shown);
    rc = rc ? rc : make_tables(r, e);
    rc = rc ? rc : begin_wal(r, e);
    if (!rc) {
        *out = r;
        return 0;
    }
    /* Nothing was recorded: leave nothing behind. */
    if (writer_file_unmoved(r->path, r->guard))
        unlink(r->path);
    release(r);
    return rc;
}

static int make_whole(struct recording *r, struct error *e)
{
    int rc = SQLITE_OK;
    if (!writer_file_unmoved(r->path, r->guard)) {
        /* Whatever has the names now is not ours to remove; what was recorded goes where the file went. */
        sqlite3_db_config(r->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        sqlite3_wal_checkpoint_v2(r->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        return error_set(
            e, ENOENT,
            "%s was moved, removed or replaced during the recording; what was recorded is in the moved file",
            r->shown);
    }
    for (int waited_ms = 0; !change_mode(r->db, END_MODE, &rc); waited_ms += CLOSE_STEP_MS) {
        struct timespec step = {.tv_nsec = CLOSE_STEP_MS * 1000000L};
        if (rc && (rc & 0xff) != SQLITE_BUSY)
            return sql_error(e, r->db, rc, r->shown);
        if (waited_ms >= RECORDING_CLOSE_MS)
            return error_set(e, EBUSY,
                             "%s is still open in another program; keep %s-wal beside it, it contains a part "
                             "of the recording",
                             r->shown, r->shown);
        nanosleep(&step, NULL);
    }
    return 0;
}

int recording_close(struct recording *r, struct error *e)
{
    if (!r)
        return 0;
    int rc = recording_commit(r, e);
    for (size_t i = 0; i < WRITER_STATEMENTS; i++)
        sql_finalize(&r->statements[i]);
    finalize_rows(r);
    if (rc)
        make_whole(r, NULL); /* may well fail for the same reason, which was told */
    else
        rc = make_whole(r, e);
    release(r);
    return rc;
}
