/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/sql_query.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "store/recording.h"
#include "store/recording_reader.h"
#include "store/sql_hints.h"

#define STEPS_BETWEEN_CHECKS 10000 /* of SQLite's machine: some 0.1 ms */
#define EXPRESSION_DEPTH     200
#define COLUMNS_MAX          2000
#define PATTERN_BYTES_MAX    1000 /* LIKE and GLOB take time by its square */

struct sql_run {
    struct store_query *q;
    struct reader *r;
    sqlite3_stmt *stmt;
    struct sql_result rows;
    char refused[64]; /* what the authorizer did not let pass; "": nothing */
    struct VEC(char *) modules;
};

/* ---- what a question may do ---- */

static int refuse(struct sql_run *k, const char *what, const char *name)
{
    snprintf(k->refused, sizeof(k->refused), "%s%.40s", what, name ? name : "");
    return SQLITE_DENY;
}

/* Lists the modules of SQLite: functions that yield rows (json_each) are among them, and are read as tables are. */
static int list_modules(struct sql_run *k)
{
    struct sql s;
    int rc = sql_prepare(&s, k->r->db, "PRAGMA module_list");
    while (!rc && sql_row(&s))
        *vec_push(&k->modules) = mem_strdup(sql_get_text(&s));
    rc = rc ? rc : s.rc;
    sql_finalize(&s);
    return rc;
}

/* No table of a recording is called like a module. SQLite makes modules of pragmas when they are first used. */
static bool is_module(const struct sql_run *k, const char *name)
{
    vec_each (char *, module, &k->modules)
        if (!strcasecmp(name, *module))
            return true;
    return !strncasecmp(name, "pragma_", strlen("pragma_"));
}

static bool is_among(const char *name, const char *const *names)
{
    while (*names && strcasecmp(name, *names))
        names++;
    return *names;
}

static int authorize(void *arg, int action, const char *one, const char *other, const char *db,
                     const char *trigger)
{
    static const char *const functions[] = {"load_extension", "fts3_tokenizer", NULL};
    static const char *const pragmas[] = {"table_info", "table_xinfo", "table_list", NULL};
    static const char *const schemas[] = {"sqlite_master", "sqlite_temp_master", NULL};
    static const char rows_of_function[] = "a function that returns rows";
    struct sql_run *k = arg;
    (void)db;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_READ:
        return is_module(k, one) ? refuse(k, rows_of_function, NULL) : SQLITE_OK;
    case SQLITE_FUNCTION:
        return other && is_among(other, functions) ? refuse(k, "the function ", other) : SQLITE_OK;
    case SQLITE_PRAGMA:
        return one && is_among(one, pragmas) ? SQLITE_OK : refuse(k, "PRAGMA ", one);
    case SQLITE_ATTACH:
        return refuse(k, "ATTACH", NULL);
    case SQLITE_UPDATE:
        /* SQLite 3.40 declares json_each() and the like by an update of the schema when they are first used. */
        if (one && is_among(one, schemas))
            return refuse(k, rows_of_function, NULL);
        /* fall through */
    default:
        return refuse(k, "a statement that changes something", NULL);
    }
}

static int check_stop(void *arg)
{
    const struct sql_run *k = arg;
    return k->q->stop && *k->q->stop;
}

static void open_up(struct sql_run *k)
{
    sqlite3 *db = k->r->db;
    /* What harden() allows is what a schema needs; a question is made by hand, and needs more. */
    sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, EXPRESSION_DEPTH);
    sqlite3_limit(db, SQLITE_LIMIT_COLUMN, COLUMNS_MAX);
    sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_BYTES_MAX);
    sqlite3_progress_handler(db, STEPS_BETWEEN_CHECKS, check_stop, k);
    sqlite3_set_authorizer(db, authorize, k);
}

/* ---- what went wrong ---- */

/* The question, or SQLite about it. Names in it may hold anything, and the line is one. */
static int blame(struct sql_run *k, struct error *e)
{
    int at = sqlite3_error_offset(k->r->db);
    char *said = sql_shown(*k->refused ? k->refused : sqlite3_errmsg(k->r->db));
    struct buf line = BUF_INIT;
    if (*k->refused)
        buf_printf(&line, "%s is not allowed: queries can only read", said);
    else
        sql_hints_add(&line, k->r->db, k->q->sql, said, &at);
    k->q->wrong_at = at < 0 ? STORE_QUERY_NOWHERE : (size_t)at;
    int rc = error_set(e, *k->refused ? EPERM : EINVAL, "%s", buf_str(&line));
    buf_release(&line);
    free(said);
    return rc;
}

static int fail(struct sql_run *k, int rc, struct error *e)
{
    int64_t allowed = k->q->memory_bytes;
    switch (rc & 0xff) {
    case SQLITE_INTERRUPT:
        return error_set(e, EINTR, "interrupted");
    case SQLITE_NOMEM:
        return error_set(e, ENOMEM, "the result takes more than %" PRId64 " MiB: use LIMIT, or select less",
                         allowed >> 20);
    case SQLITE_AUTH:
    case SQLITE_ERROR:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
        return blame(k, e);
    default:
        return sql_error(e, k->r->db, rc, k->r->shown);
    }
}

static int refuse_at(struct sql_run *k, const char *place, int code, const char *why, struct error *e)
{
    k->q->wrong_at = (size_t)(place - k->q->sql);
    return error_set(e, code, "%s", why);
}

/* ---- asking ---- */

/* Past blanks, semicolons and comments. */
static const char *skip_nothing(const char *sql)
{
    for (;;) {
        sql += strspn(sql, " \t\r\n\f;");
        if (!strncmp(sql, "--", 2))
            sql += strcspn(sql, "\n");
        else if (!strncmp(sql, "/*", 2))
            sql = strstr(sql + 2, "*/") ? strstr(sql + 2, "*/") + 2 : sql + strlen(sql);
        else
            return sql;
    }
}

static int prepare(struct sql_run *k, struct error *e)
{
    const char *rest = k->q->sql;
    int rc = sqlite3_prepare_v3(k->r->db, k->q->sql, -1, 0, &k->stmt, &rest);
    if (rc)
        return fail(k, rc, e);
    if (!k->stmt)
        return error_set(e, EINVAL, "empty query: write SELECT ...");
    if (*skip_nothing(rest))
        return refuse_at(k, skip_nothing(rest), EINVAL, "a second query begins here: run one at a time", e);
    if (!sqlite3_stmt_readonly(k->stmt) || !sqlite3_column_count(k->stmt))
        return error_set(e, EPERM, "only queries can be run: begin with SELECT, WITH or VALUES");
    for (int i = 0; i < sqlite3_column_count(k->stmt); i++)
        sql_result_column(&k->rows, sqlite3_column_name(k->stmt, i));
    return 0;
}

static void take_value(struct sql_run *k, int column)
{
    struct sql_result_value *v = vec_push(&k->rows.values);
    const void *bytes;
    switch (sqlite3_column_type(k->stmt, column)) {
    case SQLITE_INTEGER:
        v->type = SQL_RESULT_WHOLE;
        v->whole = sqlite3_column_int64(k->stmt, column);
        break;
    case SQLITE_FLOAT:
        v->type = SQL_RESULT_REAL;
        v->real = sqlite3_column_double(k->stmt, column);
        break;
    case SQLITE_TEXT:
    case SQLITE_BLOB:
        v->type = sqlite3_column_type(k->stmt, column) == SQLITE_TEXT ? SQL_RESULT_TEXT : SQL_RESULT_BYTES;
        bytes = sqlite3_column_blob(k->stmt, column);
        v->bytes = bytes ? (size_t)sqlite3_column_bytes(k->stmt, column) : 0;
        v->text = mem_alloc(v->bytes + 1);
        if (bytes)
            memcpy(v->text, bytes, v->bytes);
        break;
    default:
        v->type = SQL_RESULT_NULL;
    }
}

static int step_through(struct sql_run *k, struct error *e)
{
    int rc, enough = 0;
    while (!enough && (rc = sqlite3_step(k->stmt)) == SQLITE_ROW) {
        for (size_t i = 0; i < k->rows.columns.len; i++)
            take_value(k, (int)i);
        if (sql_result_rows(&k->rows) < STORE_QUERY_BATCH_ROWS)
            continue;
        enough = k->q->take(k->q->arg, &k->rows, true);
        sql_result_clear(&k->rows);
    }
    if (enough)
        return enough;
    int bad = rc == SQLITE_DONE ? 0 : fail(k, rc, e);
    if (!bad || sql_result_rows(&k->rows)) /* what was found up to there is true */
        enough = k->q->take(k->q->arg, &k->rows, bad != 0);
    return bad ? bad : enough;
}

/* Of a reader that was opened; closes it. */
static int run_query(struct store_query *q, struct reader *r, struct error *e)
{
    struct sql_run k = {.q = q, .r = r};
    q->wrong_at = STORE_QUERY_NOWHERE;
    if (!q->memory_bytes)
        q->memory_bytes = STORE_QUERY_MEMORY_BYTES;
    int64_t before = sqlite3_hard_heap_limit64(q->memory_bytes);
    int rc = sql_execute(r->db, "PRAGMA temp_store = MEMORY");
    rc = rc ? rc : list_modules(&k);
    if (rc) {
        rc = sql_error(e, r->db, rc, r->shown);
    } else {
        open_up(&k);
        rc = prepare(&k, e);
        rc = rc ? rc : step_through(&k, e);
        sqlite3_finalize(k.stmt);
    }
    reader_close(r);
    sqlite3_hard_heap_limit64(before);
    sql_result_release(&k.rows);
    vec_each (char *, module, &k.modules)
        free(*module);
    vec_release(&k.modules);
    return rc;
}

int store_query_file(struct store_query *q, const char *path, struct error *e)
{
    struct reader r;
    int rc = reader_open(&r, path, e);
    if (!rc)
        return run_query(q, &r, e);
    reader_close(&r);
    return rc;
}

/* ---- a recording of a profile ---- */

/* What the profile says of one image. Names and stacks stay the profile's. */
static struct profile part_of(const struct profile *p, uint32_t image)
{
    struct profile part = *p;
    uint32_t *cell = mem_array(p->cells.len, sizeof(*cell)),
             *thread = mem_array(p->threads.len, sizeof(*thread));
    memset(&part.images, 0, sizeof(part.images));
    memset(&part.threads, 0, sizeof(part.threads));
    memset(&part.cells, 0, sizeof(part.cells));
    memset(&part.samples, 0, sizeof(part.samples));
    memset(&part.frees, 0, sizeof(part.frees));
    memset(&part.points, 0, sizeof(part.points));
    memset(&part.mappings, 0, sizeof(part.mappings));           /* the modules have their places */
    memset(&part.stack_numbers, 0, sizeof(part.stack_numbers)); /* nobody reads events beside it */
    *vec_push(&part.images) = p->images.at[image];
    for (uint32_t i = 0; i < p->threads.len; i++) {
        thread[i] = (uint32_t)part.threads.len;
        if (p->threads.at[i].image == image) {
            *vec_push(&part.threads) = p->threads.at[i];
            part.threads.at[thread[i]].image = 0;
        }
    }
    for (uint32_t i = 0; i < p->cells.len; i++) {
        cell[i] = PROFILE_NONE;
        if (p->cells.at[i].image != image)
            continue;
        cell[i] = (uint32_t)part.cells.len;
        struct profile_cell *c = vec_push(&part.cells);
        *c = p->cells.at[i];
        c->image = 0;
        c->thread = thread[c->thread];
    }
    vec_each (const struct profile_sample, s, &p->samples)
        if (cell[s->cell] != PROFILE_NONE) {
            struct profile_sample *own = vec_push(&part.samples);
            *own = *s;
            own->cell = cell[s->cell];
        }
    vec_each (const struct profile_free, f, &p->frees)
        if (cell[f->cell] != PROFILE_NONE) {
            struct profile_free *own = vec_push(&part.frees);
            *own = *f;
            own->cell = cell[f->cell];
            own->thread = f->thread == PROFILE_NONE ? PROFILE_NONE : thread[f->thread];
        }
    free(cell);
    free(thread);
    return part;
}

static void release_part(struct profile *part)
{
    vec_release(&part->images);
    vec_release(&part->threads);
    vec_release(&part->cells);
    vec_release(&part->samples);
    vec_release(&part->frees);
}

static int put_profile(struct recording *r, const struct profile *p, struct error *e)
{
    int rc = 0;
    for (uint32_t i = 0; i < p->images.len && !rc; i++) {
        struct profile part = part_of(p, i);
        rc = recording_put_image(r, &part, false, e);
        vec_each (const struct profile_point, q, &p->points)
            if (!rc && q->image == i)
                rc = recording_put_point(r, p->images.at[i].id, q, NULL, NULL, e);
        release_part(&part);
    }
    if (!rc && p->period_bytes)
        rc = recording_set_number(r, RECORDING_PERIOD, (int64_t)p->period_bytes, e);
    if (!rc && p->images_dropped) {
        rc = recording_set_number(r, SCHEMA_DROPPED, (int64_t)p->images_dropped, e);
        rc = rc ? rc : recording_set_number(r, SCHEMA_DROPPED_PEAK, (int64_t)p->images_dropped_peak_bytes, e);
    }
    return rc;
}

static int record(const struct profile *p, const char *path, struct error *e)
{
    struct recording *r;
    int rc = recording_create(&r, path, false, e);
    if (rc)
        return rc;
    rc = put_profile(r, p, e);
    int closed = recording_close(r, rc ? NULL : e);
    return rc ? rc : closed;
}

int store_query_profile(struct store_query *q, const struct profile *p, struct error *e)
{
    const char *tmp = getenv("TMPDIR");
    struct buf folder = BUF_INIT, path = BUF_INIT;
    struct reader r = {0};
    buf_printf(&folder, "%s/allium-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    int rc = mkdtemp(folder.data) ? 0
                                  : error_set(e, errno, "cannot make a folder in %s: %s; set TMPDIR",
                                              buf_str(&folder), strerror(errno));
    if (!rc) {
        buf_printf(&path, "%s/profile", buf_str(&folder));
        rc = record(p, buf_str(&path), e);
        rc = rc ? rc : reader_open(&r, buf_str(&path), e);
        unlink(buf_str(&path)); /* an open file stays */
        rmdir(buf_str(&folder));
        rc = rc ? rc : run_query(q, &r, e);
    }
    reader_close(&r);
    buf_release(&folder);
    buf_release(&path);
    return rc;
}
