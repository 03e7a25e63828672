/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of `allium sql`: whatever is asked of whatever file, the answer is whole or one line of text, the file is
 * as it was, nothing lies beside it, and no more memory is taken than allowed. The bytes before the first NUL are the
 * question, those behind it changes to the file: offset in three bytes, value.
 */
#include "require.h"

#include "store/recording.h"
#include "store/sql_query.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <sqlite3.h>

#define CHANGE_BYTES 4
#define MEMORY_BYTES (8 << 20)
#define PATIENCE_US  20000 /* of CPU time: then the question is stopped, as with ^C */
#define ALL_ROWS_MAX 5000

static char folder[] = "/tmp/allium-fuzz-XXXXXX", path[64];
static char *sample, *file; /* a recording, whole; the one that is asked */
static size_t bytes;
static struct profile *profile;
static volatile sig_atomic_t stopped;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void make_profile(void)
{
    struct profile *p = profile = profile_new();
    *vec_push(&p->images) = (struct profile_image){.id = 7, .pid = 9, .began_ns = 1000, .peak_ns = 1000};
    *vec_push(&p->images) = (struct profile_image){.id = 8, .pid = 10, .began_ns = 1000, .peak_ns = 1000};
    for (uint32_t i = 0; i < 2; i++)
        *vec_push(&p->threads) = (struct profile_thread){i, 9, profile_string(p, "main"), 0};
    *vec_push(&p->lines) =
        (struct profile_line){profile_string(p, "f<int>"), profile_string(p, "src/a.c"), 3, false};
    *vec_push(&p->locations) = (struct profile_location){PROFILE_NONE, 4096, false, 0, 1};
    *vec_push(&p->stack_locations) = 0;
    *vec_push(&p->stacks) = (struct profile_stack){0, 1, PROFILE_STACK_WHOLE};
    struct profile_sums s = {3, 10, 20, 30};
    for (uint32_t i = 0; i < 2; i++)
        *vec_push(&p->cells) = (struct profile_cell){
            .image = i, .thread = i, .size_class = 5, .period_bytes = 4096, .allocated = s, .at_peak = s};
    *vec_push(&p->samples) = (struct profile_sample){1, 2, 4096, 16, 8, 1001};
    *vec_push(&p->frees) = (struct profile_free){.cell = 1,
                                                 .serial = 5,
                                                 .born_ns = 1000,
                                                 .freed_ns = 1002,
                                                 .stack = 0,
                                                 .location = PROFILE_NONE,
                                                 .thread = 1};
    *vec_push(&p->points) = (struct profile_point){.image = 1, .time_ns = 1001, .live_bytes = 1};
    p->period_bytes = 4096;
    p->images_dropped = 1;
}

static void record(void)
{
    struct error e = {""};
    struct recording *r;
    struct profile one = *profile;
    one.images.len = one.threads.len = one.cells.len = one.samples.len = 1;
    one.samples.at[0].cell = 0;
    one.frees.len = one.points.len = 0;
    require(!recording_create(&r, path, true, &e) && !recording_put_image(r, &one, true, &e) &&
                !recording_close(r, &e),
            "cannot record: %s", e.text);
    profile->samples.at[0].cell = 1;
}

static void remove_all(void)
{
    unlink(path);
    rmdir(folder);
}

static void stop(int sig)
{
    (void)sig;
    stopped = 1;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    require(mkdtemp(folder), "no folder: %s", folder);
    atexit(remove_all);
    snprintf(path, sizeof(path), "%s/a", folder);
    setenv("TMPDIR", folder, 1);
    make_profile();
    record();
    FILE *f = fopen(path, "r");
    require(f, "cannot read: %s", path);
    sample = mem_alloc(1 << 20);
    file = mem_alloc(1 << 20);
    bytes = fread(sample, 1, 1 << 20, f);
    fclose(f);
    signal(SIGVTALRM, stop);
    return 0;
}

static void write_file(const uint8_t *changes, size_t n)
{
    memcpy(file, sample, bytes);
    for (size_t i = 0; i + CHANGE_BYTES <= n; i += CHANGE_BYTES)
        file[(changes[i] | (size_t)changes[i + 1] << 8 | (size_t)changes[i + 2] << 16) % bytes] =
            (char)changes[i + 3];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    require(fd >= 0 && write(fd, file, bytes) == (ssize_t)bytes, "cannot write: %s", path);
    close(fd);
}

/* As the file was, and alone. */
static void check_untouched(const char *sql)
{
    static char now[1 << 20];
    int fd = open(path, O_RDONLY);
    ssize_t got = read(fd, now, sizeof(now));
    close(fd);
    require(got == (ssize_t)bytes && !memcmp(now, file, bytes), "a question changed the file: %s", sql);
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d));)
        require(e->d_name[0] == '.' || !strcmp(e->d_name, "a"), "a question left a file: %s", e->d_name);
    closedir(d);
}

struct taken {
    size_t rows, calls, columns;
    bool last;
};

static int take(void *arg, const struct sql_result *rows, bool more)
{
    struct taken *t = arg;
    size_t n = sql_result_rows(rows);
    require(!t->last, "rows after the last ones");
    require(n <= STORE_QUERY_BATCH_ROWS && rows->values.len == n * rows->columns.len && rows->columns.len,
            "torn rows");
    require(!t->calls || t->columns == rows->columns.len, "other columns");
    vec_each (const struct sql_result_value, v, &rows->values)
        require((v->type != SQL_RESULT_TEXT && v->type != SQL_RESULT_BYTES) || !v->text[v->bytes],
                "no end of a text");
    t->columns = rows->columns.len;
    t->calls++;
    t->rows += n;
    t->last = !more;
    return t->rows > ALL_ROWS_MAX ? -EPIPE : 0;
}

static void ask(const char *sql, const struct profile *p)
{
    struct taken t = {0};
    struct error e = {""};
    struct store_query q = {
        .sql = sql, .stop = &stopped, .take = take, .arg = &t, .memory_bytes = MEMORY_BYTES};
    struct itimerval patience = {.it_value = {0, PATIENCE_US}}, none = {{0, 0}, {0, 0}};
    stopped = 0;
    setitimer(ITIMER_VIRTUAL, &patience, NULL);
    sqlite3_memory_highwater(1);
    int rc = p ? store_query_profile(&q, p, &e) : store_query_file(&q, path, &e);
    setitimer(ITIMER_VIRTUAL, &none, NULL);
    require(rc <= 0, "a code above 0: %s", sql);
    require(p || sqlite3_memory_highwater(0) < MEMORY_BYTES + (1 << 20), "more memory than allowed: %s", sql);
    require(q.wrong_at == STORE_QUERY_NOWHERE || q.wrong_at <= strlen(sql),
            "a place outside the question: %s", sql);
    if (rc == -EPIPE)
        return;
    require(!rc == t.last, "an answer that is not whole, or has no end: %s", sql);
    require(!rc || (*e.text && !strpbrk(e.text, "\n\r\t\033")), "not one line: %s", e.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *sql = mem_strndup((const char *)data, size);
    size_t len = strlen(sql);
    write_file(data + (len < size ? len + 1 : len), len < size ? size - len - 1 : 0);
    ask(sql, NULL);
    check_untouched(sql);
    if (len % 8 == 0) {
        ask(sql, profile);
        check_untouched(sql);
    }
    free(sql);
    return 0;
}
