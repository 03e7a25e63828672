/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/store/query: answers are those of SQLite alone; nothing that is asked, and no file that is asked, does any harm.
 */
#include "test_store.h"

#include "store/recording_reader.h"
#include "store/sql_query.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define ENDLESS "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "

struct found {
    struct buf text; /* values with | behind each, rows with a newline */
    size_t rows, batches, largest;
    bool ended; /* a batch said that no more follows */
};

static void say_value(struct buf *b, const struct sql_result_value *v)
{
    if (v->type == SQL_RESULT_WHOLE)
        buf_printf(b, "%" PRId64, v->whole);
    else if (v->type == SQL_RESULT_REAL)
        buf_printf(b, "%a", v->real);
    else if (v->type != SQL_RESULT_NULL)
        buf_printf(b, "%zu:%s", v->bytes, v->text);
    buf_addch(b, '|');
}

static int collect(void *arg, const struct sql_result *a, bool more)
{
    struct found *f = arg;
    for (size_t row = 0; row < sql_result_rows(a); row++) {
        for (size_t i = 0; i < a->columns.len; i++)
            say_value(&f->text, sql_result_at(a, row, i));
        buf_addch(&f->text, '\n');
    }
    f->rows += sql_result_rows(a);
    f->batches++;
    f->largest = sql_result_rows(a) > f->largest ? sql_result_rows(a) : f->largest;
    f->ended |= !more;
    return 0;
}

static int question(const char *sql, struct found *f)
{
    struct store_query q = {.sql = sql, .take = collect, .arg = f};
    *f = (struct found){.rows = 0};
    err.text[0] = '\0';
    return store_query_file(&q, file, &err);
}

/* The same, asked of the file by SQLite without anything of ours. */
static char *plain_answer(const char *sql)
{
    struct buf b = BUF_INIT;
    sqlite3 *db;
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL))
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    while (sqlite3_step(s) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(s); i++) {
            int type = sqlite3_column_type(s, i);
            if (type == SQLITE_INTEGER)
                buf_printf(&b, "%lld", (long long)sqlite3_column_int64(s, i));
            else if (type == SQLITE_FLOAT)
                buf_printf(&b, "%a", sqlite3_column_double(s, i));
            else if (type != SQLITE_NULL)
                buf_printf(&b, "%d:%s", sqlite3_column_bytes(s, i), (const char *)sqlite3_column_text(s, i));
            buf_addch(&b, '|');
        }
        buf_addch(&b, '\n');
    }
    sqlite3_finalize(s);
    sqlite3_close(db);
    return buf_detach(&b);
}

static void make_recording(int images)
{
    uint64_t seed = 5;
    struct recording *r = create();
    for (int i = 0; i < images; i++) {
        struct profile *p = new_image(&seed, 40 + (uint64_t)i);
        for (uint64_t step = 0; step < 4; step++) {
            struct profile_point q = {.time_ns = p->taken_ns, .live_bytes = 5.5 * (double)step};
            grow(p, &seed, 100);
            assert_ok(recording_put_point(r, p->images.at[0].id, &q, p, NULL, &err));
        }
        put(r, p);
        profile_free(p);
    }
    assert_ok(recording_close(r, &err));
}

static void answers_are_those_of_sqlite(void **state)
{
    (void)state;
    static const char *const questions[] = {
        "SELECT * FROM meta",
        "SELECT * FROM cell ORDER BY id",
        "SELECT * FROM live_sample",
        "SELECT text, length(text) FROM string",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 12345) SELECT i, i / 2.5 FROM "
        "n",
        "VALUES(1, NULL, 'x', -9223372036854775808, 9e999, '')",
        "SELECT image, max(size_bytes) FROM live_sample GROUP BY 1 HAVING count(*) > 1; -- and that is all",
        "SELECT 1 WHERE 0",
        "SELECT c.*, i.*, l.* FROM cell c JOIN image i ON i.id = c.image JOIN live_sample l ON l.cell = c.id "
        "LIMIT 9",
    };
    struct found f;
    make_recording(3);
    for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
        char *expected = plain_answer(questions[i]);
        assert_ok(question(questions[i], &f));
        assert_string_equal(buf_str(&f.text), expected);
        assert_true(f.ended && f.batches == f.rows / STORE_QUERY_BATCH_ROWS + 1);
        assert_true(f.largest <= STORE_QUERY_BATCH_ROWS);
        buf_release(&f.text);
        free(expected);
    }
}

static uint64_t sum_of_folder(void)
{
    uint64_t sum = 0;
    DIR *d = opendir(test_folder);
    for (struct dirent *entry; (entry = readdir(d));)
        if (*entry->d_name != '.')
            sum += 1000003 * strlen(entry->d_name);
    closedir(d);
    FILE *f = fopen(file, "r");
    for (int c; (c = fgetc(f)) != EOF;)
        sum = sum * 31 + (uint64_t)c;
    fclose(f);
    return sum;
}

static void a_question_only_reads(void **state)
{
    (void)state;
    static const char *const others[] = {
        "ATTACH 'other.db' AS other",
        "DETACH main",
        "VACUUM",
        "VACUUM INTO 'copy.db'",
        "DELETE FROM cell",
        "UPDATE cell SET id = 1",
        "INSERT INTO meta VALUES('a', 'b')",
        "REPLACE INTO meta SELECT 'a', 'b'",
        "WITH x AS (SELECT 1) DELETE FROM meta",
        "DELETE FROM meta RETURNING key",
        "CREATE TABLE t(x)",
        "CREATE TEMP TABLE t AS SELECT * FROM cell",
        "CREATE TEMP VIEW v AS SELECT 1",
        "CREATE TEMP TRIGGER t AFTER INSERT ON cell BEGIN SELECT 1; END",
        "CREATE VIRTUAL TABLE v USING fts5(x)",
        "DROP TABLE cell",
        "ALTER TABLE cell RENAME TO sell",
        "REINDEX",
        "ANALYZE",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT s",
        "PRAGMA writable_schema = ON",
        "PRAGMA query_only = OFF",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA temp_store_directory = '/tmp'",
        "PRAGMA trusted_schema = ON",
        "PRAGMA user_version",
        "SELECT load_extension('evil.so')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT * FROM json_each('[1]')",
        "SELECT count(*) FROM json_tree('[1]')",
        "SELECT 1 FROM cell, json_each('[1]')",
        "SELECT * FROM dbstat",
        "SELECT * FROM pragma_user_version",
        "UPDATE sqlite_schema SET sql = 'x'",
        "EXPLAIN DELETE FROM cell",
    };
    make_recording(1);
    uint64_t before = sum_of_folder();
    struct found f;
    assert_int_equal(chdir(test_folder), 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        int rc = question(others[i], &f);
        if ((rc != -EPERM && rc != -EINVAL) || f.batches || strpbrk(err.text, "\n"))
            fail_msg("%s: %d %s", others[i], rc, err.text);
        if (sum_of_folder() != before)
            fail_msg("%s changed something", others[i]);
    }
    assert_int_equal(chdir("/"), 0);
    assert_ok(question("PRAGMA table_info(cell)", &f));
    assert_int_equal(f.rows, 36);
    buf_release(&f.text);
}

static void a_wrong_question_shows_where(void **state)
{
    (void)state;
    static const struct {
        const char *sql, *words;
        size_t at;
    } others[] = {
        {"SELECT nonsense FROM cell",
         "no such column: nonsense; `allium sql 'PRAGMA table_info(TABLE)'` lists the columns", 7},
        {"SELECT c.Allocated_byte FROM cell c", "did you mean allocated_bytes?", 7},
        {"SELECT 1, Rss_anon_bytes FROM cell", "no such column: Rss_anon_bytes; it is one of image, point",
         10},
        {"SELECT c.text FROM cell c", "no such column: c.text; it is one of string", 7},
        {"SELECT id FROM cell, stack", "ambiguous column name: id; write TABLE.COLUMN", 7},
        {"SELECT 1 FORM cell c", "syntax error; man allium-sql has examples", 14},
        {" SELEC 1", "near \"SELEC\": syntax error; a query begins with SELECT, WITH or VALUES", 1},
        {".schema", "PRAGMA table_list lists the tables", 0},
        {"SELECT * FROM nowhere", "no such table: nowhere; tables are meta, string, image,",
         STORE_QUERY_NOWHERE},
        {"SELECT * FROM main.cells", "did you mean cell? tables are meta,", STORE_QUERY_NOWHERE},
        {"SELECT", "incomplete query", 6},
        {"SELECT (1\n  \n", "a word, a ) or a */ is missing at the end; man allium-sql has examples", 9},
        {"SELECT 1 + /* end", "incomplete query", 17},
        {"SELECT\n  1,\n  foo(2)", "no such function: foo", 14},
        {"SELECT 1; SELECT 2", "a second query begins here", 10},
        {"SELECT 1 /* ; */ ; -- x\n ; x", "a second query begins here", 27},
        {"SELECT 'a", "the quotation mark that begins here is not closed", 7},
        {"SELECT 1, [a", "the bracket that begins here is not closed", 10},
        {"SELECT @", "unrecognized token: \"@\"; man allium-sql has examples", 7},
        {"SELECT \"a\n\033[2J\"(1)", "no such function: a??[2J", 7},
        {"", "empty query: write SELECT ...", STORE_QUERY_NOWHERE},
        {" -- nothing", "empty query: write SELECT ...", STORE_QUERY_NOWHERE},
        {"SELECT abs(-9223372036854775808)", "integer overflow", STORE_QUERY_NOWHERE},
        {"SELECT randomblob(2000000)", "too big", STORE_QUERY_NOWHERE},
        {"SELECT zeroblob(2000000000)", "too big; the limit is 1 MiB", STORE_QUERY_NOWHERE},
        {"SELECT replace(hex(zeroblob(400000)), '0', '01')", "too big", STORE_QUERY_NOWHERE},
        {"SELECT 'a' LIKE printf('%.*c', 2000, '%')", "pattern too complex", STORE_QUERY_NOWHERE},
        {"SELECT 'a' GLOB printf('%.*c', 2000, '*')", "pattern too complex", STORE_QUERY_NOWHERE},
        {"SELECT group_concat(hex(randomblob(1000)), '') FROM (" ENDLESS "SELECT i FROM n LIMIT 2000)",
         "too big", STORE_QUERY_NOWHERE},
    };
    make_recording(1);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        struct found f = {.rows = 0};
        struct store_query q = {.sql = others[i].sql, .take = collect, .arg = &f};
        int rc = store_query_file(&q, file, &err);
        if (rc != -EINVAL || !strstr(err.text, others[i].words) || q.wrong_at != others[i].at)
            fail_msg("%s: %d %s at %zu", others[i].sql, rc, err.text, q.wrong_at);
        assert_int_equal(f.batches, 0);
    }
}

static void no_more_memory_than_allowed_is_taken(void **state)
{
    (void)state;
    static const char *const others[] = {
        ENDLESS "SELECT i FROM n ORDER BY i",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n) SELECT count(*) FROM n",
        ENDLESS "SELECT count(DISTINCT i) FROM n",
        ENDLESS "SELECT sum(i) OVER (ORDER BY -i) FROM n",
    };
    make_recording(1);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        struct found f = {.rows = 0};
        struct store_query q = {.sql = others[i], .take = collect, .arg = &f, .memory_bytes = 8 << 20};
        assert_refused(store_query_file(&q, file, &err), ENOMEM, "more than 8 MiB");
        assert_true(sqlite3_memory_highwater(1) < 9 << 20);
        assert_false(f.ended);
        buf_release(&f.text);
    }
    assert_int_equal(sqlite3_hard_heap_limit64(-1), 0);
}

/* By another process: a signal in the midst of a query is something that a sanitizer keeps for later. */
static pid_t stop_after_a_while(volatile sig_atomic_t *stop)
{
    pid_t pid = fork();
    if (!pid) {
        usleep(500000);
        *stop = 1;
        _exit(0);
    }
    return pid;
}

static void an_endless_question_can_be_stopped(void **state)
{
    (void)state;
    static const char *const others[] = {
        ENDLESS "SELECT count(*) FROM n",
        "SELECT count(*) FROM cell a, cell b, cell c, cell d, cell e, cell f",
        ENDLESS "SELECT count(hex(randomblob(100000))) FROM n",
        ENDLESS "SELECT sum(printf('%.*c', 10000, 'a') LIKE '%a%a%a%a%b') FROM n",
    };
    volatile sig_atomic_t *stop =
        mmap(NULL, sizeof(*stop), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(stop, MAP_FAILED);
    make_recording(1);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        struct found f = {.rows = 0};
        struct store_query q = {.sql = others[i], .take = collect, .arg = &f, .stop = stop};
        *stop = 0;
        pid_t stopper = stop_after_a_while(stop);
        assert_refused(store_query_file(&q, file, &err), EINTR, "interrupted");
        assert_int_equal(f.batches, 0);
        assert_int_equal(waitpid(stopper, NULL, 0), stopper);
    }
    munmap((void *)(uintptr_t)stop, sizeof(*stop));
}

static void change(const char *sql)
{
    sqlite3 *db;
    assert_int_equal(empty_folder(NULL), 0);
    make_recording(1);
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    if (sql_execute(db, sql))
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void a_file_of_a_stranger_is_harmless(void **state)
{
    (void)state;
    static const char *const others[] = {
        "CREATE VIEW v AS SELECT load_extension('evil.so')",
        "ALTER TABLE meta RENAME TO m; CREATE VIEW meta AS SELECT load_extension('evil.so') key, 1 value",
        "ALTER TABLE cell ADD COLUMN more GENERATED ALWAYS AS (abs(id))",
        "CREATE TRIGGER t AFTER INSERT ON cell BEGIN DELETE FROM meta; END",
        "CREATE INDEX i ON cell(abs(id))",
        "CREATE TABLE other(x DEFAULT (random()))",
    };
    struct found f;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        change(others[i]);
        assert_refused(question("SELECT * FROM meta", &f), EBADMSG, "has tables that allium does not create");
    }
    /* Values may be anything: they are only shown. */
    change("UPDATE meta SET value = x'00ff00'; UPDATE string SET text = char(27) || '[2J' || char(10) WHERE "
           "id > 0;"
           "UPDATE cell SET allocated_bytes = 9e999, stack = 'none'");
    assert_ok(question("SELECT * FROM meta, string, cell LIMIT 50", &f));
    assert_int_equal(f.rows, 50);
    buf_release(&f.text);
}

/* Bytes changed at random, mostly of pages after the first: rows, or one line. */
static void a_damaged_file_is_harmless(void **state)
{
    (void)state;
    static const char *const questions[] = {
        "SELECT * FROM cell JOIN live_sample l ON l.cell = cell.id",
        "SELECT group_concat(text) FROM string",
        "SELECT count(*), max(address) FROM recent_free WHERE image >= 0 ORDER BY size_bytes",
    };
    static char bytes[1 << 20], damaged[1 << 20];
    uint64_t seed = 11;
    unsigned answered = 0, refused = 0;
    make_recording(1);
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof(bytes), f);
    assert_in_range(n, 8 * 4096, sizeof(bytes) - 1);
    fclose(f);
    for (int i = 0; i < 600; i++) {
        struct found found;
        memcpy(damaged, bytes, n);
        for (int k = 0; k < 30; k++) {
            size_t page = (i % 8 ? 1 + below(&seed, n / 4096 - 1) : 0) * 4096;
            damaged[page + below(&seed, draw(&seed) % 2 ? 40 : 4096)] = (char)draw(&seed);
        }
        f = fopen(file, "w");
        assert_true(f && fwrite(damaged, 1, n, f) == n && !fclose(f));
        int rc = question(questions[i % 3], &found);
        if (rc && (!*err.text || strpbrk(err.text, "\n\033")))
            fail_msg("%d '%s'", rc, err.text);
        *(rc ? &refused : &answered) += 1;
        buf_release(&found.text);
    }
    assert_true(answered > 50 && refused > 50);
}

/* What a profile of several images says, added up without SQL. */
static void a_profile_is_asked_like_a_recording(void **state)
{
    (void)state;
    struct profile *p;
    struct buf expected = BUF_INIT;
    struct found f = {.rows = 0};
    static const char sql[] =
        "SELECT i.image_id, i.comm > 0, (SELECT count(*) FROM thread t WHERE t.image = i.id),"
        " count(*), sum(c.allocated_samples), sum(c.freed_samples),"
        " (SELECT sum(s.address % 1000) FROM live_sample s WHERE s.image = i.id),"
        " (SELECT sum(size_bytes) FROM recent_free x JOIN thread t ON t.id = x.thread WHERE t.image = i.id),"
        " (SELECT count(*) FROM point q WHERE q.image = i.id)"
        " FROM image i JOIN cell c ON c.image = i.id JOIN thread t ON t.id = c.thread AND t.image = i.id"
        " GROUP BY i.id ORDER BY i.id";
    make_recording(3);
    assert_ok(recording_load(&p, file, NULL, &err));
    assert_int_equal(p->images.len, 3);
    for (uint32_t i = 0; i < p->images.len; i++) {
        uint64_t threads = 0, cells = 0, allocated = 0, freed = 0, points = 0, sizes = 0;
        int64_t addresses = 0;
        vec_each (struct profile_thread, t, &p->threads)
            threads += t->image == i;
        vec_each (struct profile_point, q, &p->points)
            points += q->image == i;
        vec_each (struct profile_cell, c, &p->cells) {
            if (c->image != i)
                continue;
            cells++;
            allocated += c->allocated.samples;
            freed += c->freed.samples;
        }
        vec_each (struct profile_sample, s, &p->samples)
            addresses += p->cells.at[s->cell].image == i ? (int64_t)s->address % 1000 : 0;
        vec_each (struct profile_free, x, &p->frees)
            sizes += x->thread != PROFILE_NONE && p->cells.at[x->cell].image == i ? x->size_bytes : 0;
        buf_printf(&expected,
                   "%" PRIu64 "|1|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRId64 "|%" PRIu64
                   "|%" PRIu64 "|\n",
                   p->images.at[i].id, threads, cells, allocated, freed, addresses, sizes, points);
    }
    struct store_query q = {.sql = sql, .take = collect, .arg = &f};
    setenv("TMPDIR", test_folder, 1);
    uint64_t before = sum_of_folder();
    assert_ok(store_query_profile(&q, p, &err));
    assert_string_equal(buf_str(&f.text), buf_str(&expected));
    assert_int_equal(sum_of_folder(), before);
    setenv("TMPDIR", "/nowhere", 1);
    assert_refused(store_query_profile(&q, p, &err), ENOENT, "set TMPDIR");
    unsetenv("TMPDIR");
    buf_release(&f.text);
    buf_release(&expected);
    profile_free(p);
}

#define TEST(sentence, function)                                                                             \
    {                                                                                                        \
        sentence, function, NULL, empty_folder, NULL                                                         \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("answers are those of SQLite alone, in batches", answers_are_those_of_sqlite),
        TEST("a question that would do more than read is refused, and changes nothing",
             a_question_only_reads),
        TEST("a question that is wrong shows where", a_wrong_question_shows_where),
        TEST("no more memory is taken than allowed", no_more_memory_than_allowed_is_taken),
        TEST("an endless question can be stopped", an_endless_question_can_be_stopped),
        TEST("a file of a stranger is harmless", a_file_of_a_stranger_is_harmless),
        TEST("a damaged file gives rows or one line", a_damaged_file_is_harmless),
        TEST("a profile of several images is asked like a recording, and leaves nothing behind",
             a_profile_is_asked_like_a_recording),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
