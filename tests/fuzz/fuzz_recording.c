/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/store: whatever a file holds, it becomes a valid profile or one line of text. An input that begins
 * as an SQLite file is the file; any other is a list of changes (offset in three bytes, value) to a small recording.
 * The mutator changes such a file's bytes, and mostly through SQL, so that it stays one.
 */
#include "require.h"

#include "store/recording.h"
#include "store/recording_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC        "SQLite format 3"
#define CHANGE_BYTES 4
#define T0           1000
#define STEPS        8

static char *sample; /* a recording, whole */
static size_t sample_bytes;

int LLVMFuzzerInitialize(int *argc, char ***argv);
static void load_accounts(struct reader *r, const uint64_t *at_ns)
{
    struct accounts a;
    struct alloc_texts texts = {.bytes = BUF_INIT};
    struct error e = {""};
    int rc = reader_load_accounts(r, &a, &texts, "tags", at_ns, &e);
    require(rc <= 0 && !rc == !*e.text, "both or neither: %s", e.text);
    vec_each (const struct account_row, row, &a.rows)
        require(!row->key.comm || alloc_texts_get(&texts, row->key.comm), "a text that is not there");
    require(rc || a.processes.len, "rows of no process");
    if (!rc)
        accounts_release(&a);
    alloc_texts_release(&texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* A bit of everything, a little more at each step. */
static void grow(struct profile *p, uint32_t step)
{
    static const char *const functions[] = {"main",   "parse", "lookup<int>", "grow",
                                            "insert", "run",   "poll",        "free_all"};
    *vec_push(&p->lines) = (struct profile_line){profile_string(p, functions[step % 8]),
                                                 profile_string(p, "src/a.c"), step, false};
    *vec_push(&p->locations) = (struct profile_location){step % 4 ? 0 : PROFILE_NONE, step, false, step, 1};
    struct profile_stack k = {(uint32_t)p->stack_locations.len, step + 1, PROFILE_STACK_WHOLE};
    for (uint32_t i = 0; i <= step; i++)
        *vec_push(&p->stack_locations) = i;
    *vec_push(&p->stacks) = k;
    struct profile_sums s = {step + 1, 10, 20, 30};
    for (uint32_t i = 0; i < 3; i++)
        *vec_push(&p->cells) = (struct profile_cell){
            .stack = step, .size_class = 5, .period_bytes = 4096, .allocated = s, .freed = s, .at_peak = s};
    vec_each (struct profile_cell, c, &p->cells)
        c->allocated.bytes += step;
    *vec_push(&p->samples) = (struct profile_sample){3 * step, 2 * step, 4096, 16, 8, T0 + step};
    *vec_push(&p->frees) = (struct profile_free){.cell = step,
                                                 .serial = 2 * step + 1,
                                                 .born_ns = T0,
                                                 .freed_ns = T0 + step,
                                                 .stack = step,
                                                 .location = PROFILE_NONE};
    p->taken_ns = p->images.at[0].taken_ns = T0 + 10 * step;
}

/* Some places of a process, and what they have done until this step. */
static void put_accounts(struct recording *r)
{
    struct alloc_texts texts = {.bytes = BUF_INIT};
    struct accounts_keeper *k = accounts_keeper_new(r, "tags");
    for (uint32_t step = 1; step <= STEPS; step++) {
        struct accounts a = {.rows = {0}};
        *vec_push(&a.processes) = (struct account_process){.image_id = 7,
                                                           .pid = 9,
                                                           .began_ns = T0,
                                                           .taken_ns = T0 + 10 * step,
                                                           .comm = "a",
                                                           .alive = step < STEPS};
        for (uint32_t place = 0; place < step; place++) {
            struct account_row *row = vec_push(&a.rows);
            row->key.line = place;
            row->key.function = alloc_texts_put(&texts, "main", 4);
            row->copies = row->of[ACCOUNT_AFTER].places = 1;
            row->of[ACCOUNT_AFTER].of[ACCOUNT_ALLOCATED_CALLS] = step;
        }
        require(!accounts_keeper_put(k, &a, &texts, NULL), "cannot keep");
        accounts_release(&a);
    }
    accounts_keeper_free(k);
    alloc_texts_release(&texts);
}

static void record(const char *path, uint64_t image)
{
    static struct recording *r;
    struct error e = {""};
    struct profile *p = profile_new();
    *vec_push(&p->images) = (struct profile_image){.id = image, .pid = 9, .began_ns = T0, .peak_ns = T0};
    *vec_push(&p->threads) = (struct profile_thread){0, 9, profile_string(p, "main"), 0};
    *vec_push(&p->modules) = (struct profile_module){profile_string(p, "/bin/a"), 0, 4096, 8192, 4096};
    int rc = r ? 0 : recording_create(&r, path, true, &e);
    for (uint32_t step = 0; step < STEPS && !rc; step++) {
        grow(p, step);
        struct profile_point q = {.time_ns = p->taken_ns, .live_bytes = 1};
        rc = recording_put_point(r, image, &q, p, NULL, &e);
    }
    require(!rc, "cannot record: %s", e.text);
    profile_free(p);
    if (image > 1)
        put_accounts(r);
    if (image > 1)
        require(!recording_set_text(r, RECORDING_VERSION, "1", &e) && !recording_close(r, &e),
                "cannot close: %s", e.text);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char folder[] = "/tmp/allium-fuzz-XXXXXX", path[64];
    (void)argc;
    (void)argv;
    require(mkdtemp(folder), "no folder: %s", folder);
    snprintf(path, sizeof(path), "%s/a", folder);
    record(path, 1);
    record(path, 2);
    FILE *f = fopen(path, "r");
    require(f, "cannot read: %s", path);
    sample = mem_alloc(1 << 20);
    sample_bytes = fread(sample, 1, 1 << 20, f);
    fclose(f);
    unlink(path);
    rmdir(folder);
    return 0;
}

static bool is_file(const uint8_t *data, size_t size)
{
    return size >= sizeof(MAGIC) && !memcmp(data, MAGIC, sizeof(MAGIC));
}

/* A database of these bytes, which sqlite3_malloc64() gave and SQLite frees. */
static sqlite3 *open_bytes(unsigned char *file, size_t bytes, unsigned flags)
{
    sqlite3 *db;
    require(!sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL),
            "no memory");
    require(!sqlite3_deserialize(db, "main", file, (sqlite3_int64)bytes, (sqlite3_int64)bytes,
                                 flags | SQLITE_DESERIALIZE_FREEONCLOSE),
            "cannot hand over");
    return db;
}

/* Ends a statement that a broken tree would keep going for ever. */
static int give_up(void *arg)
{
    (void)arg;
    return 1;
}

/* Some rows go, or a column of theirs gets a value that is likely to matter; random() is seeded. */
static void edit(sqlite3 *db)
{
    static const char make[] =
        "SELECT CASE WHEN random() % 10 THEN printf('UPDATE OR REPLACE \"%w\" SET \"%w\" = ', t.name, c.name)"
        " || replace(v.column1, '@', c.name) ELSE printf('DELETE FROM \"%w\"', t.name) END"
        " || ' WHERE random() % ' || (1 + abs(random() % 16)) || ' = 0'"
        " FROM sqlite_schema t, pragma_table_info(t.name) c, (VALUES ('NULL'), ('-1'), ('0'), ('1'), ('@ + "
        "1'),"
        " ('@ - 1'), ('@ * 2'), ('4294967295'), ('9223372036854775807'), ('1e308'), ('''x''')) v"
        " ORDER BY random() LIMIT 1";
    sqlite3_stmt *made = NULL;
    if (!sqlite3_prepare_v2(db, make, -1, &made, NULL) && sqlite3_step(made) == SQLITE_ROW)
        sqlite3_exec(db, (const char *)sqlite3_column_text(made, 0), NULL, NULL, NULL);
    sqlite3_finalize(made);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    sqlite3_int64 bytes = 0;
    unsigned char *file = NULL;
    if (is_file(data, size) && seed % 4) {
        file = sqlite3_malloc64(size);
        require(file, "out of memory");
        memcpy(file, data, size);
        sqlite3 *db = open_bytes(file, size, SQLITE_DESERIALIZE_RESIZEABLE);
        sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, (int)seed, NULL);
        sqlite3_progress_handler(db, 1 << 20, give_up, NULL);
        for (unsigned n = 1 + seed % 3; n; n--)
            edit(db);
        file = sqlite3_serialize(db, "main", &bytes, 0);
        sqlite3_close(db);
    }
    if (file && bytes && (size_t)bytes <= max_size)
        memcpy(data, file, (size_t)bytes);
    else
        bytes = (sqlite3_int64)LLVMFuzzerMutate(data, size, max_size);
    sqlite3_free(file);
    return (size_t)bytes;
}

/* The file that an input stands for. */
static unsigned char *make_file(const uint8_t *data, size_t size, size_t *bytes)
{
    bool whole = is_file(data, size);
    *bytes = whole ? size : sample_bytes;
    unsigned char *file = sqlite3_malloc64(*bytes);
    require(file, "out of memory");
    memcpy(file, whole ? (const void *)data : sample, *bytes);
    for (size_t i = 0; !whole && i + CHANGE_BYTES <= size; i += CHANGE_BYTES)
        file[(data[i] | (size_t)data[i + 1] << 8 | (size_t)data[i + 2] << 16) % *bytes] = data[i + 3];
    return file;
}

static void check(int rc, const struct profile *p, const struct error *e)
{
    require(rc <= 0 && !rc == !!p, "both or neither: %s", e->text);
    require(!p || profile_valid(p), "not valid");
    require(!rc || (*e->text && !strpbrk(e->text, "\n\r\t\033")), "not one line: %s", e->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t bytes;
    unsigned char *file = make_file(data, size, &bytes);
    sqlite3 *db = open_bytes(file, bytes, SQLITE_DESERIALIZE_READONLY);
    struct reader r = {0};
    struct error e = {""};
    struct recording_summary s = {0};
    int rc = reader_attach(&r, db, "fuzz", &e);
    if (!rc)
        rc = reader_summarize(&r, &s, &e);
    if (rc)
        check(rc, NULL, &e);
    uint64_t times[] = {0, s.first_ns, s.first_ns / 2 + s.last_ns / 2};
    for (size_t i = 0; i < 6 && !rc; i++) {
        struct profile *p = NULL;
        r.without = i % 2 ? 0 : RECORDING_POINTS | RECORDING_LIFETIMES;
        rc = reader_load(&r, i / 2 ? &times[i / 2] : NULL, &p, &e);
        check(rc, p, &e);
        profile_free(p);
    }
    for (size_t i = 0; i < 3 && !rc; i++)
        load_accounts(&r, i ? &times[i] : NULL);
    recording_summary_release(&s);
    reader_close(&r);
    return 0;
}
