/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/recording.h"
#include "store/recording_reader.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS          5000
#define COPY_BYTES       65536
#define ROW_BYTES_MAX    (1 << 20) /* of a row or a string */
#define SCHEMA_BYTES_MAX (1 << 16) /* of one statement */
#define COLUMNS_MAX      64
#define FRAMES_MAX       (1u << 27) /* 512 MiB */

static char *beside(const char *path, const char *suffix)
{
    struct buf b = BUF_INIT;
    buf_addstr(&b, path);
    buf_addstr(&b, suffix);
    return buf_detach(&b);
}

/* Bytes of a regular file; -1: none there. */
static int64_t bytes_beside(const char *path, const char *suffix)
{
    struct stat st;
    char *name = beside(path, suffix);
    int64_t bytes = !lstat(name, &st) && S_ISREG(st.st_mode) ? st.st_size : -1;
    free(name);
    return bytes;
}

/* Before the schema is parsed: a stranger wrote it. */
static void harden(sqlite3 *db)
{
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, BUSY_MS);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, ROW_BYTES_MAX);
    sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, SCHEMA_BYTES_MAX);
    sqlite3_limit(db, SQLITE_LIMIT_COLUMN, COLUMNS_MAX);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(db, SQLITE_LIMIT_TRIGGER_DEPTH, 0);
    sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 16);
    sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, 0);
}

static int refuse_newer(struct reader *r, int64_t version, struct error *e)
{
    struct sql s = {0};
    const char *by = "";
    if (schema_has_meta(r->db) &&
        !sql_prepare(&s, r->db, "SELECT value FROM meta WHERE key = '" RECORDING_VERSION "'") && sql_row(&s))
        by = sql_get_text(&s);
    char *maker = sql_shown(by);
    int rc = error_set(e, EPROTONOSUPPORT,
                       "%s was made by a newer allium%s%.32s (schema %" PRId64
                       ", this one knows %d); update allium",
                       r->shown, *maker ? " " : "", maker, version, SCHEMA_VERSION);
    sql_finalize(&s);
    free(maker);
    return rc;
}

static int check_kind(struct reader *r, struct error *e)
{
    int64_t application, version, pages = 0, page_bytes = 0;
    int rc = sql_select_number(r->db, "PRAGMA page_count", &pages);
    rc = rc ? rc : sql_select_number(r->db, "PRAGMA page_size", &page_bytes);
    rc = rc ? rc : sql_select_number(r->db, "PRAGMA application_id", &application);
    rc = rc ? rc : sql_select_number(r->db, "PRAGMA user_version", &version);
    if (rc)
        return rc;
    r->bytes = (uint64_t)(pages * page_bytes);
    r->frames_max = FRAMES_MAX;
    if (application != SCHEMA_APPLICATION_ID || version < 1)
        return error_set(e, EBADMSG,
                         "%s is an SQLite database, but not an allium recording; use a file written by "
                         "'allium run', 'allium snapshot' or 'allium sys TOOL -o'",
                         r->shown);
    if (version > SCHEMA_VERSION)
        return refuse_newer(r, version, e);
    if (!schema_matches(r->db, &rc) && !rc)
        return error_set(e, EBADMSG, "%s has tables that allium does not create; use the original recording",
                         r->shown);
    return rc;
}

/* 0, an SQLite result code, or -errno with its line. */
static int check_database(struct reader *r, struct error *e)
{
    harden(r->db);
    int rc = sql_execute(r->db,
                         "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA query_only = ON; BEGIN");
    return rc ? rc : check_kind(r, e);
}

static int result(struct reader *r, int rc, struct error *e)
{
    return rc > 0 ? sql_error(e, r->db, rc, r->shown) : rc;
}

int reader_attach(struct reader *r, sqlite3 *db, const char *shown, struct error *e)
{
    *r = (struct reader){.db = db, .shown = sql_shown(shown)};
    return result(r, check_database(r, e), e);
}

static char *as_uri(const char *absolute, const char *options)
{
    struct buf b = BUF_INIT;
    buf_addstr(&b, "file:");
    for (const char *c = absolute; *c; c++) {
        if (strchr("%?#", *c))
            buf_printf(&b, "%%%02x", (unsigned)*c);
        else
            buf_addch(&b, *c);
    }
    buf_addstr(&b, options);
    return buf_detach(&b);
}

/* 0, an SQLite result code, or -errno with its line. */
static int try_open(struct reader *r, const char *absolute, const char *options, struct error *e)
{
    char *uri = as_uri(absolute, options);
    sqlite3_close(r->db);
    int rc = sqlite3_open_v2(
        uri, &r->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
        NULL);
    free(uri);
    return rc ? rc : check_database(r, e);
}

static int copy_file(const char *from, const char *to)
{
    char *bytes = mem_alloc(COPY_BYTES);
    int in = open(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), rc = in < 0 ? -errno : 0;
    int out = rc ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t len = 0;
    if (!rc && out < 0)
        rc = -errno;
    while (!rc && (len = read(in, bytes, COPY_BYTES)) > 0)
        for (ssize_t done = 0, n; !rc && done < len; done += n) {
            n = write(out, bytes + done, (size_t)(len - done));
            rc = n < 0 ? -errno : 0;
        }
    if (!rc && len < 0)
        rc = -errno;
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    free(bytes);
    return rc;
}

static int copy_beside(const char *from, const char *to, const char *suffix)
{
    char *source = beside(from, suffix), *target = beside(to, suffix);
    int rc = copy_file(source, target);
    free(source);
    free(target);
    return rc;
}

/* There is a -wal, and SQLite may not make the -shm it needs to read it: a copy of both can be read. */
static int open_copy(struct reader *r, const char *absolute, struct error *e)
{
    const char *tmp = getenv("TMPDIR");
    r->folder = beside(tmp && *tmp == '/' ? tmp : "/tmp", "/allium-XXXXXX");
    if (!mkdtemp(r->folder)) {
        int code = errno;
        free(r->folder);
        r->folder = NULL;
        return error_set(e, code,
                         "%s must be copied before it can be read, and there is no room: %s; set TMPDIR",
                         r->shown, strerror(code));
    }
    char *copy = beside(r->folder, "/copy");
    int rc = copy_beside(absolute, copy, "");
    rc = rc ? rc : copy_beside(absolute, copy, "-wal");
    if (rc)
        rc = error_set(e, -rc,
                       "%s must be copied before it can be read, and the copy failed: %s; set TMPDIR to a "
                       "folder with more room",
                       r->shown, strerror(-rc));
    else
        rc = try_open(r, copy, "?mode=ro", e);
    free(copy);
    return rc;
}

static void remove_copy(const char *folder)
{
    static const char *const names[] = {"/copy", "/copy-wal", "/copy-shm"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char *name = beside(folder, names[i]);
        unlink(name);
        free(name);
    }
    rmdir(folder);
}

static int find_file(const char *path, const char *shown, char **absolute, struct error *e)
{
    struct stat st;
    *absolute = realpath(path, NULL);
    if (!*absolute || stat(*absolute, &st))
        return errno == ENOENT ? error_set(e, ENOENT,
                                           "%s does not exist; use a file written by 'allium run', 'allium "
                                           "snapshot' or 'allium sys TOOL -o'",
                                           shown)
                               : error_set(e, errno, "cannot open %s: %s", shown, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return error_set(e, EISDIR, "%s is a directory; give a recording in it", shown);
    if (!S_ISREG(st.st_mode))
        return error_set(e, EBADMSG,
                         "%s is not a regular file; use a file written by 'allium run', 'allium snapshot' or "
                         "'allium sys TOOL -o'",
                         shown);
    if (access(*absolute, R_OK))
        return error_set(e, errno, "cannot open %s: %s; only its owner may read a recording", shown,
                         strerror(errno));
    if (!st.st_size)
        return error_set(e, EBADMSG, "%s is empty, and not an allium recording; record again", shown);
    return 0;
}

/*
 * Without a -wal nobody writes, or nothing was committed yet: the file is read as it is, with no lock and no
 * file beside it. With one, locks and a -shm keep us and the writer apart.
 */
static int open_file(struct reader *r, const char *absolute, struct error *e)
{
    if (bytes_beside(absolute, "-journal") > 0)
        return error_set(e, EBADMSG,
                         "%s has a journal: another program changed it and did not finish; run 'sqlite3 %s "
                         ".schema' to undo the change",
                         r->shown, r->shown);
    if (bytes_beside(absolute, "-wal") <= 0)
        return try_open(r, absolute, "?mode=ro&immutable=1", e);
    int rc = try_open(r, absolute, "?mode=ro", e);
    if (rc > 0 && ((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY))
        rc = open_copy(r, absolute, e);
    return rc;
}

/*
 * A writer holds a lock on the first byte (recording_file.c). To be asked before SQLite has the file open: closing a
 * descriptor drops the locks of a process. False where the file system has no locks.
 */
static bool is_unwritten(const char *absolute)
{
    struct flock first = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    int fd = open(absolute, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool free = fd >= 0 && !fcntl(fd, F_OFD_GETLK, &first) && first.l_type == F_UNLCK;
    if (fd >= 0)
        close(fd);
    return free;
}

int reader_open(struct reader *r, const char *path, struct error *e)
{
    char *absolute;
    *r = (struct reader){.shown = sql_shown(path)};
    int rc = find_file(path, r->shown, &absolute, e);
    if (!rc) {
        r->unwritten = is_unwritten(absolute);
        rc = result(r, open_file(r, absolute, e), e);
    }
    free(absolute);
    return rc;
}

void reader_close(struct reader *r)
{
    sqlite3_close(r->db);
    if (r->folder)
        remove_copy(r->folder);
    free(r->folder);
    free(r->shown);
    *r = (struct reader){0};
}
