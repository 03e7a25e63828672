/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/store when things go wrong: the writer is killed, the disk is full, the file is not what it says it is.
 */
#include "test_store.h"

#include "store/recording_reader.h"
#include "store/recording_writer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

static void write_bytes(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static char *read_bytes(const char *path, size_t *n)
{
    struct stat st;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    char *bytes = mem_alloc((size_t)st.st_size);
    *n = fread(bytes, 1, (size_t)st.st_size, f);
    fclose(f);
    return bytes;
}

static void put_generations(int generations)
{
    uint64_t seed = 1;
    struct recording *r;
    assert_ok(recording_create(&r, file, true, &err));
    struct profile *p = new_image(&seed, 42);
    for (int i = 0; i < generations; i++) {
        struct profile_point q = {.time_ns = p->taken_ns, .live_bytes = i};
        assert_ok(recording_put_point(r, 42, &q, p, NULL, &err));
        grow(p, &seed, 5);
    }
    p->images.at[0].id = 43; /* another one, with all it has */
    assert_ok(recording_put_image(r, p, true, &err));
    assert_ok(recording_set_text(r, RECORDING_VERSION, "9.9", &err));
    assert_ok(recording_close(r, &err));
    profile_free(p);
}

/* The image as it is after so many steps. */
static struct profile *generation(uint64_t seed, int64_t steps)
{
    struct profile *p = new_image(&seed, 42);
    for (int64_t i = 0; i < steps; i++)
        grow(p, &seed, 8);
    return p;
}

static void write_until_killed(uint64_t seed, int tell)
{
    struct recording *r;
    bool seed_is_odd = seed % 2;
    struct profile *p = new_image(&seed, 42);
    if (recording_create(&r, file, true, &err))
        _exit(1);
    /* Every other one comes to its end, or nearly. */
    for (int64_t i = 0; seed_is_odd || i < 6; i++) {
        if (recording_put_image(r, p, false, &err) || recording_set_number(r, "step", i, &err) ||
            recording_commit(r, &err) || write(tell, &i, sizeof(i)) != sizeof(i))
            _exit(1);
        grow(p, &seed, 8);
    }
    recording_close(r, &err);
    pause();
}

/* Runs a writer and kills it after some time. The last step it told of; -1: none. */
static int64_t run_and_kill(uint64_t seed)
{
    int pipes[2], status;
    int64_t told_step = -1, step;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (!child) {
        close(pipes[0]);
        write_until_killed(seed, pipes[1]);
    }
    close(pipes[1]);
    if (read(pipes[0], &step, sizeof(step)) == sizeof(step))
        told_step = step;
    usleep((useconds_t)(draw(&seed) % 20000));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    while (read(pipes[0], &step, sizeof(step)) == sizeof(step))
        told_step = step;
    close(pipes[0]);
    assert_true(WIFSIGNALED(status));
    return told_step;
}

static void assert_is_generation(uint64_t seed, int64_t at_least)
{
    struct recording_summary s;
    int64_t step = -1;
    assert_ok(recording_summarize(&s, file, &err));
    assert_true(recording_number(&s, "step", &step));
    recording_summary_release(&s);
    assert_true(step >= at_least);
    struct profile *p = generation(seed, step);
    assert_holds(p);
    profile_free(p);
}

static void a_killed_writer_leaves_what_it_committed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 25; seed++)
        assert_is_generation(seed, run_and_kill(seed));
}

/* In a child that may read and not write, be it root or not. */
static void assert_holds_unprivileged(uint64_t seed, int64_t at_least)
{
    int status;
    chmod(file, 0444);
    chmod(wal, 0444);
    chmod(shm, 0444);
    chmod(test_folder, 0555);
    pid_t child = fork();
    if (!child) {
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        if (!getuid() && setuid(65534))
            _exit(9);
        assert_is_generation(seed, at_least);
        if (!access(wal, F_OK) && access(shm, F_OK)) {
            struct profile *p;
            setenv("TMPDIR", "/nowhere", 1);
            assert_refused(recording_load(&p, file, NULL, &err), ENOENT, "set TMPDIR");
        }
        _exit(0);
    }
    waitpid(child, &status, 0);
    chmod(test_folder, 0755);
    assert_int_equal(status, 0);
}

static void after_a_crash_a_read_only_folder_is_enough(void **state)
{
    (void)state;
    for (uint64_t seed = 31; seed < 36; seed += 2) {
        int64_t step = run_and_kill(seed);
        assert_holds_unprivileged(seed, step);
        unlink(shm);
        assert_holds_unprivileged(seed, step);
        assert_int_equal(access(shm, F_OK), -1);
        assert_is_generation(seed, step);
    }
}

static void a_full_disk_is_told_once_and_takes_nothing_committed(void **state)
{
    (void)state;
    struct rlimit limit, all;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &all);
    for (uint64_t kib = 100; kib < 1500; kib += 93) {
        uint64_t seed = kib;
        int64_t step = -1, i = 0;
        struct recording *r;
        struct profile *p = new_image(&seed, 42);
        struct error again;
        limit = (struct rlimit){kib << 10, all.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
        assert_ok(recording_create(&r, file, true, &err));
        int rc = 0;
        for (; !rc; i++) {
            rc = recording_put_image(r, p, false, &err);
            rc = rc ? rc : recording_set_number(r, "step", i, &err);
            rc = rc ? rc : recording_commit(r, &err);
            step = rc ? step : i;
            grow(p, &seed, 8);
        }
        assert_refused(rc, EFBIG, "what was recorded before stays readable");
        assert_int_equal(recording_put_image(r, p, false, &again), rc);
        assert_string_equal(again.text, err.text);
        assert_int_equal(recording_close(r, &again), rc);
        assert_string_equal(again.text, err.text);
        setrlimit(RLIMIT_FSIZE, &all);
        assert_is_generation(kib, step);
        profile_free(p);
    }
}

/* Whatever the file holds: a valid profile, or a line of text. */
static bool load_anything(void)
{
    struct profile *p;
    struct recording_summary s;
    static const uint64_t at = T0 + 100;
    err.text[0] = '\0';
    for (int i = 0; i < 2; i++) {
        int rc = recording_load(&p, file, i ? &at : NULL, &err);
        if (rc) {
            assert_true(rc < 0 && !p && *err.text && !strpbrk(err.text, "\n\r\t"));
            return false;
        }
        assert_true(profile_valid(p));
        profile_free(p);
    }
    if (recording_summarize(&s, file, &err))
        return false;
    recording_summary_release(&s);
    return true;
}

static void truncated_files_are_refused_or_read(void **state)
{
    (void)state;
    size_t n;
    put_generations(12);
    char *bytes = read_bytes(file, &n);
    assert_true(load_anything());
    for (size_t at = 0; at < n; at += at % 4096 ? 4096 - at % 4096 : 500) {
        write_bytes(file, bytes, at);
        assert_false(load_anything());
    }
    free(bytes);
}

static void flipped_bytes_do_no_harm(void **state)
{
    (void)state;
    size_t n, refused = 0;
    uint64_t seed = 2;
    put_generations(12);
    char *bytes = read_bytes(file, &n);
    for (int i = 0; i < 3000; i++) {
        int flips = 1 + (int)(draw(&seed) % 4);
        struct {
            size_t at;
            char was;
        } changed[4];
        for (int k = 0; k < flips; k++) {
            size_t at =
                draw(&seed) % 3 ? draw(&seed) % n : draw(&seed) % (n / 4096) * 4096 + draw(&seed) % 40;
            changed[k].at = at;
            changed[k].was = bytes[at];
            bytes[at] = (char)draw(&seed);
        }
        write_bytes(file, bytes, n);
        refused += !load_anything();
        for (int k = flips - 1; k >= 0; k--)
            bytes[changed[k].at] = changed[k].was;
    }
    assert_true(refused > 300 && refused < 2900);
    free(bytes);
}

static void flipped_bytes_of_what_a_crash_left_do_no_harm(void **state)
{
    (void)state;
    size_t n, n_wal;
    uint64_t seed = 3;
    run_and_kill(seed);
    char *bytes = read_bytes(file, &n), *more = read_bytes(wal, &n_wal);
    for (int i = 0; i < 300; i++) {
        size_t at = draw(&seed) % n_wal;
        char was = more[at];
        more[at] = (char)draw(&seed);
        write_bytes(wal, more, i % 2 ? n_wal : at);
        unlink(shm);
        load_anything();
        more[at] = was;
    }
    free(bytes);
    free(more);
}

static void change(const char *sql)
{
    sqlite3 *db;
    put_generations(3);
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sql_execute(db, sql), SQLITE_OK);
    sqlite3_close(db);
}

static void other_schemas_are_refused(void **state)
{
    (void)state;
    static const char *const others[] = {
        "CREATE VIEW v AS SELECT 1",
        "CREATE INDEX i ON cell(image)",
        "CREATE TRIGGER t AFTER INSERT ON cell BEGIN SELECT 1; END",
        "CREATE TABLE other(x)",
        "DROP TABLE point",
        "DROP TABLE point; CREATE VIEW point AS SELECT 1 AS image, 2 AS time_ns, 3, 4, 5, 6",
        "ALTER TABLE cell ADD COLUMN more",
        "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema",
    };
    struct profile *p;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        change(others[i]);
        assert_refused(recording_load(&p, file, NULL, &err), EBADMSG,
                       "has tables that allium does not create");
    }
    change("PRAGMA user_version = 2");
    assert_refused(recording_load(&p, file, NULL, &err), EPROTONOSUPPORT, "newer allium 9.9 (schema 2");
    change("UPDATE meta SET value = x'00' WHERE key = 'allium_version'; PRAGMA user_version = 3");
    assert_refused(recording_load(&p, file, NULL, &err), EPROTONOSUPPORT, "newer allium (schema 3");
    change("PRAGMA application_id = 1");
    assert_refused(recording_load(&p, file, NULL, &err), EBADMSG, "not an allium recording");
}

static void rows_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const char *const others[][2] = {
        {"UPDATE cell SET stack = 100000 WHERE id = 3", "(table cell)"},
        {"UPDATE cell SET thread = -1 WHERE id = 3", "(table cell)"},
        {"UPDATE cell SET allocated_bytes = NULL WHERE id = 3", "(table cell)"},
        {"UPDATE cell SET allocated_samples = 'many' WHERE id = 3", "(table cell)"},
        {"UPDATE cell SET size_class = 64 WHERE id = 3", "(table cell)"},
        {"DELETE FROM cell WHERE id = 3", "(table cell)"},
        {"DELETE FROM string", "(table string)"},
        {"UPDATE string SET text = 'twice' WHERE id IN (3, 4)", "(table string)"},
        {"UPDATE string SET text = '' WHERE id = 4", "(table string)"},
        {"UPDATE stack SET caller = id WHERE id = 9", "(table stack)"},
        {"UPDATE stack SET caller = id + 1 WHERE id = 9", "(table stack)"},
        {"UPDATE stack SET location = NULL WHERE id = 9", "(table stack)"},
        {"UPDATE line SET position = 7 WHERE location = (SELECT min(location) FROM line)", ""},
        {"UPDATE line SET function = 0", "(table line)"},
        {"UPDATE location SET module = 99999", "(table location)"},
        {"UPDATE live_sample SET cell = 'x'", "(table live_sample)"},
        {"UPDATE recent_free SET stack = 99999", "(table recent_free)"},
        {"UPDATE recent_free SET thread = (SELECT max(id) FROM thread) WHERE image = 0",
         "(table recent_free)"},
        {"DELETE FROM live_sample WHERE image = 1; UPDATE live_sample SET image = 1", "(table live_sample)"},
        {"UPDATE cell SET thread = (SELECT max(id) FROM thread) WHERE id = 3", "(table cell)"},
        {"UPDATE moment_cell SET cell = (SELECT max(id) FROM cell) WHERE cell = 3", "(table moment_cell)"},
        {"UPDATE image SET state = 9", "(table image)"},
        {"UPDATE thread SET image = 2", "(table thread)"},
        {"INSERT INTO lifetime VALUES(15, 1)", "(table lifetime)"},
        {"UPDATE point SET moment = 1", ""},
        {"UPDATE meta SET value = 'x' WHERE key = 'taken_ns'", "(table meta)"},
        {"INSERT INTO meta VALUES('period_bytes', 'x')", "(table meta)"},
        {"INSERT INTO meta VALUES('period_bytes', 0)", "(table meta)"},
        {"INSERT INTO meta VALUES('period_bytes', -1)", "(table meta)"},
        {"INSERT INTO meta VALUES('period_bytes', 0.5)", "(table meta)"},
        {"WITH RECURSIVE n(i) AS (SELECT (SELECT max(id) FROM stack) + 1 UNION ALL SELECT i + 1 FROM n LIMIT "
         "2000)"
         " INSERT INTO stack SELECT i, i - 1, 0 FROM n",
         "(table stack)"},
    };
    static const uint64_t at = T0 + 25;
    struct profile *p;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        change(others[i][0]);
        int rc = recording_load(&p, file, &at, &err);
        if (rc != -EBADMSG || !strstr(err.text, others[i][1]))
            fail_msg("%s: %d %s", others[i][0], rc, err.text);
    }
}

/* A tree's root whose last branch is its first one again, so that its rows would come twice. */
static void join_branches(const char *table)
{
    char question[100];
    size_t n;
    snprintf(question, sizeof(question), "SELECT rootpage FROM sqlite_schema WHERE name = '%s'", table);
    size_t root = (size_t)(ask(question) - 1) * 4096;
    char *bytes = read_bytes(file, &n), *page = bytes + root;
    assert_true(page[0] == 2 || page[0] == 5); /* it has branches */
    size_t first = (size_t)(unsigned char)page[12] << 8 | (unsigned char)page[13];
    memcpy(page + 8, page + first, 4);
    write_bytes(file, bytes, n);
    free(bytes);
}

static void a_tree_whose_branches_meet_again_is_refused(void **state)
{
    (void)state;
    static const char *const tables[] = {"string", "line", "cell", "moment_cell"};
    static const uint64_t at = T0 + 395;
    struct profile *p;
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
        char words[32];
        put_generations(40);
        join_branches(tables[i]);
        snprintf(words, sizeof(words), "(table %s)", tables[i]);
        assert_refused(recording_load(&p, file, &at, &err), EBADMSG, words);
    }
}

static void what_needs_more_memory_than_a_recording_may_is_refused(void **state)
{
    (void)state;
    struct reader r;
    struct profile *p;
    put_generations(3);
    for (int limit = 0; limit < 3; limit++) {
        assert_ok(reader_open(&r, file, &err));
        r.bytes = limit == 1 ? 100 : r.bytes;
        r.frames_max = limit == 2 ? 50 : r.frames_max;
        int rc = reader_load(&r, NULL, &p, &err);
        if (limit == 0)
            assert_int_equal(rc, 0);
        else if (limit == 1)
            assert_refused(rc, EBADMSG, "(table string)");
        else
            assert_refused(rc, EFBIG, "more than 50 frames");
        profile_free(p);
        reader_close(&r);
    }
}

static void files_of_another_user_beside_a_recording_are_noticed(void **state)
{
    (void)state;
    put_generations(1);
    assert_true(writer_neighbours_ours(file));
    assert_int_equal(symlink("/etc/passwd", wal), 0);
    assert_false(writer_neighbours_ours(file));
    unlink(wal);
    write_bytes(shm, "", 0);
    assert_true(writer_neighbours_ours(file));
    if (!getuid()) {
        assert_int_equal(chown(shm, 65534, 65534), 0);
        assert_false(writer_neighbours_ours(file));
    }
}

static void what_is_no_recording_is_refused_with_advice(void **state)
{
    (void)state;
    struct profile *p;
    char bytes[20000];
    uint64_t seed = 4, first, last;
    assert_refused(recording_load(&p, file, NULL, &err), ENOENT,
                   "does not exist; use a file written by 'allium run'");
    assert_refused(recording_times(file, &first, &last, &err), ENOENT, "does not exist");
    assert_refused(recording_load(&p, test_folder, NULL, &err), EISDIR, "is a directory");
    assert_refused(recording_load(&p, "/dev/zero", NULL, &err), EBADMSG, "not a regular file");
    assert_int_equal(mkfifo(file, 0600), 0);
    assert_refused(recording_load(&p, file, NULL, &err), EBADMSG, "not a regular file");
    unlink(file);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)draw(&seed);
    write_bytes(file, bytes, 0);
    assert_refused(recording_load(&p, file, NULL, &err), EBADMSG, "is empty");
    write_bytes(file, bytes, sizeof(bytes));
    assert_refused(recording_load(&p, file, NULL, &err), EBADMSG, "not an allium recording");
    put_generations(1);
    chmod(file, 0600);
    pid_t child = fork();
    int status;
    if (!child) {
        chmod(test_folder, 0755);
        if (getuid() ? chmod(file, 0) : setuid(65534))
            _exit(9);
        _exit(recording_load(&p, file, NULL, &err) == -EACCES && strstr(err.text, "only its owner") ? 0 : 1);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    char journal[80];
    snprintf(journal, sizeof(journal), "%s-journal", file);
    write_bytes(journal, bytes, 600);
    assert_refused(recording_load(&p, file, NULL, &err), EBADMSG, "has a journal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_killed_writer_leaves_what_it_committed, empty_folder),
        cmocka_unit_test_teardown(after_a_crash_a_read_only_folder_is_enough, empty_folder),
        cmocka_unit_test_teardown(a_full_disk_is_told_once_and_takes_nothing_committed, empty_folder),
        cmocka_unit_test_teardown(truncated_files_are_refused_or_read, empty_folder),
        cmocka_unit_test_teardown(flipped_bytes_do_no_harm, empty_folder),
        cmocka_unit_test_teardown(flipped_bytes_of_what_a_crash_left_do_no_harm, empty_folder),
        cmocka_unit_test_teardown(other_schemas_are_refused, empty_folder),
        cmocka_unit_test_teardown(rows_that_make_no_sense_are_refused, empty_folder),
        cmocka_unit_test_teardown(a_tree_whose_branches_meet_again_is_refused, empty_folder),
        cmocka_unit_test_teardown(what_needs_more_memory_than_a_recording_may_is_refused, empty_folder),
        cmocka_unit_test_teardown(files_of_another_user_beside_a_recording_are_noticed, empty_folder),
        cmocka_unit_test_teardown(what_is_no_recording_is_refused_with_advice, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
