/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rows FILE [ROWS]: how many rows a second `allium sys NAME -o FILE` can keep: rows like an event's, put and committed,
 * with SQLite's own insertion of the same rows, prepared and in one transaction, as a floor, in turns. At least a
 * million a second; of CPU time too, which other work on the machine changes less.
 */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "model/table/table.h"
#include "store/recording.h"

#define BATCH    1000u
#define TURNS    5
#define AT_LEAST 1e6

static const struct table_column columns[] = {
    {"time", TABLE_INSTANT, TABLE_WHOLE}, {"pid", TABLE_PLAIN, TABLE_WHOLE},
    {"comm", TABLE_PLAIN, TABLE_TEXT},    {"duration", TABLE_DURATION, TABLE_WHOLE},
    {"order", TABLE_PLAIN, TABLE_WHOLE},
};
enum { COLUMNS = sizeof(columns) / sizeof(*columns) };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fill(struct table *t, uint64_t from)
{
    table_clear(t);
    for (uint64_t i = from; i < from + BATCH; i++) {
        table_row(t);
        table_whole(t, 0, i * 1000);
        table_whole(t, 1, i % 997);
        table_text(t, 2, "kworker/u4:1");
        table_whole(t, 3, i * 31 % 100003);
        table_whole(t, 4, i % 4);
    }
}

static double ours(const char *path, uint64_t rows)
{
    struct recording *r;
    struct error e = {""};
    struct table *t = table_new("rows", 1, columns, COLUMNS);
    double began = now_s();
    int bad = recording_create(&r, path, false, &e);
    for (uint64_t i = 0; !bad && i < rows; i += BATCH) {
        fill(t, i);
        bad = recording_put_rows(r, "sys_bench", t, i + 1, &e);
    }
    bad = bad ? bad : recording_close(r, &e);
    if (bad) {
        fprintf(stderr, "%s\n", e.text);
        exit(1);
    }
    table_free(t);
    return now_s() - began;
}

static double floor_of(const char *path, uint64_t rows)
{
    sqlite3 *db;
    sqlite3_stmt *put;
    double began = now_s();
    if (sqlite3_open(path, &db) ||
        sqlite3_exec(db, "PRAGMA journal_mode = WAL; CREATE TABLE r(a, b, c, d, e, f); BEGIN", NULL, NULL,
                     NULL) ||
        sqlite3_prepare_v2(db, "INSERT INTO r VALUES (?1, ?2, ?3, 'kworker/u4:1', ?4, ?5)", -1, &put, NULL))
        exit(1);
    for (uint64_t i = 0; i < rows; i++) {
        int64_t values[] = {(int64_t)(i / BATCH), (int64_t)i * 1000, (int64_t)(i % 997),
                            (int64_t)(i * 31 % 100003), (int64_t)(i % 4)};
        for (int k = 0; k < 5; k++)
            sqlite3_bind_int64(put, k + 1, values[k]);
        sqlite3_step(put);
        sqlite3_reset(put);
    }
    sqlite3_finalize(put);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(db);
    return now_s() - began;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    uint64_t rows = argc > 2 ? strtoull(argv[2], NULL, 10) / BATCH * BATCH : 1000000;
    double rate[TURNS], ratio[TURNS], cpu[TURNS];
    if (argc < 2 || !rows)
        return 2;
    for (int i = 0; i < TURNS; i++) {
        unlink(argv[1]);
        double bare = floor_of(argv[1], rows);
        unlink(argv[1]);
        double cpu_began = cpu_s(), took = ours(argv[1], rows);
        cpu[i] = (double)rows / (cpu_s() - cpu_began);
        rate[i] = (double)rows / took;
        ratio[i] = took / bare;
        unlink(argv[1]);
    }
    qsort(rate, TURNS, sizeof(*rate), by_value);
    qsort(cpu, TURNS, sizeof(*cpu), by_value);
    qsort(ratio, TURNS, sizeof(*ratio), by_value);
    printf("%" PRIu64 " rows of events into a recording, %d turns\n", rows, TURNS);
    printf("  %-24s %8.0f a second (%.0f to %.0f)   at least %.0f: %s\n", "recording_put_rows",
           rate[TURNS / 2], rate[0], rate[TURNS - 1], AT_LEAST,
           rate[TURNS / 2] >= AT_LEAST ? "reached" : "MISSED");
    printf("  %-24s %8.0f (%.0f to %.0f)\n", "in a second of CPU time", cpu[TURNS / 2], cpu[0],
           cpu[TURNS - 1]);
    printf("  %-24s %8.2f x (%.2f to %.2f)\n", "time, of SQLite's own", ratio[TURNS / 2], ratio[0],
           ratio[TURNS - 1]);
    return rate[TURNS / 2] < AT_LEAST;
}
