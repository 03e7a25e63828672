/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_RECORDING_READER_H
#define STORE_RECORDING_READER_H

/*
 * The state of a recording that is being read, shared by the files that read it. recording_open.c opens it,
 * profile_load.c reads the profile, snapshot_at.c takes it back to an earlier time, recording_summary.c reads
 * the rest.
 *
 * Runs in: the tool. Threads: one at a time for one reader. Owns: the connection, and a copy if one was made.
 * Invariant: reader_open() begins one transaction: everything is read as of one moment.
 */

#include "base/hash_map.h"
#include "store/account_tables.h"
#include "store/profile_load.h"
#include "store/profile_rows.h"
#include "store/schema.h"

struct reader {
    sqlite3 *db;
    char *shown;  /* the path for messages */
    char *folder; /* folder of the copy; NULL: no copy */
    /* size of all pages: the bound of all texts, unless one is referred to many times */
    uint64_t bytes;
    uint64_t text_left_bytes; /* the part of `bytes` not used up by texts yet */
    uint64_t frames_max;      /* of all stacks */
    bool unwritten;           /* no process is writing the file */
    unsigned without;         /* parts to leave out; see profile_load.h */
    struct scan *each;        /* the scan whose rows are being handed over; NULL: none */
};

int reader_open(struct reader *r, const char *path, struct error *e);
/** Takes over an unused connection (of a fuzzer), restricts it, and checks the database. */
int reader_attach(struct reader *r, sqlite3 *db, const char *shown, struct error *e);
void reader_close(struct reader *r);
/** Like recording_load(). */
int reader_load(struct reader *r, const uint64_t *at_ns, struct profile **p, struct error *e);
/** Like recording_load_rows(). */
int reader_load_rows(struct reader *r, const char *name, struct table *t,
                     void (*each)(void *arg, uint64_t time_ns), void *arg, struct error *e);
/** Like recording_load_accounts(). */
int reader_load_accounts(struct reader *r, struct accounts *a, struct alloc_texts *texts, const char *kind,
                         const uint64_t *at_ns, struct error *e);
/** Like recording_summarize(). The caller releases `s` in any case. */
int reader_summarize(struct reader *r, struct recording_summary *s, struct error *e);

struct scan;
/** Called with a row; the function may mark its columns as bad, which ends the scan. */
typedef void reader_take(void *arg, struct scan *s);
typedef bool reader_wants(void *arg, struct scan *s);

/** One scan of a table. */
struct scan {
    struct reader *r;
    enum schema_table table;
    struct sql row;
    int64_t last[2]; /* key of the previous row */
    uint64_t n;      /* rows so far, including this one */
    bool falls;      /* in descending order of the key */
    reader_wants *wants;
    reader_take *take;
    void *arg;
};

/** Begins a scan in the order of the key. The caller must call reader_scan_end() in any case. */
void reader_scan(struct scan *s, struct reader *r, enum schema_table table);
/** Like reader_scan(), for some columns, and for the rows that a clause ("WHERE ...") selects; it may have
 * parameters. */
void reader_scan_some(struct scan *s, struct reader *r, enum schema_table table, const char *columns,
                      const char *where);
/** Begins the scan again with a new first parameter. */
void reader_scan_again(struct scan *s, int64_t parameter);
/** Steps to the next row. True: its columns can be read. False: the end, damage, or an error. */
bool reader_scan_row(struct scan *s);
/** Returns the next column of the row as a text. */
const char *reader_scan_text(struct scan *s);
/** Returns the error with its line; 0: none. */
int reader_scan_end(struct scan *s, struct error *e);

/**
 * A whole scan: each row is handed to `take`. The values reach it as arguments of a function in the
 * statement's WHERE, directly from SQLite's memory. That costs about half as much as reader_scan_row().
 */
struct each {
    enum schema_table table;
    const char *columns; /* NULL: all; without `wants`, the key comes first */
    const char *where;   /* a condition for rows, with `parameter` as ?1; NULL: none */
    int64_t parameter;
    bool falls; /* from the highest key down */
    /* NULL: all rows. Else it gets the key, and the other columns are read only if it returns true */
    reader_wants *wants;
    reader_take *take;
    void *arg;
};
/** Returns as reader_scan_end() does. */
int reader_each(struct reader *r, const struct each *of, struct error *e);

/* The parts of a recording that were read so far, by row. */
struct loaded_image {
    uint32_t index;          /* in the profile; PROFILE_NONE: left out */
    bool past;               /* to be shown as it was at the snapshot's time */
    uint64_t cut_ns;         /* objects allocated or freed later are left out; UINT64_MAX: none */
    uint64_t rss_anon_bytes; /* at the last point that counts */
};
struct loaded_stack {
    uint32_t caller, location, index; /* index: in the profile; PROFILE_NONE: not there (yet) */
    uint16_t depth;
    uint8_t end;
};
struct loaded_thread {
    uint32_t image; /* row */
    uint32_t index; /* PROFILE_NONE: left out */
};
struct loaded_cell {
    uint32_t image; /* row */
    uint32_t index; /* PROFILE_NONE: left out, or not known yet */
    bool recalled;  /* a snapshot has set its sums */
};

struct loader {
    struct reader *r;
    struct profile *p;
    const uint64_t *at_ns;
    struct row_limits rows;
    struct VEC(struct loaded_image) images;
    struct VEC(struct loaded_stack) stacks;
    struct VEC(struct loaded_thread) threads;
    struct VEC(struct loaded_cell)
        cells; /* as the profile's, by row, until those not needed go (profile_load.c: use_cells()) */
    /* snapshots that count -> row of the image; if all of them are loaded: -> index in the profile's `moments` */
    struct map moments;
    int64_t last_moment; /* the largest of them; -1: none */
};

/** profile_load.c: sets *index to the profile's index of a stack's row, which is unrolled at its first use. False:
 * the profile has too many frames. */
bool load_use_stack(struct loader *l, uint32_t row, uint32_t *index);
int load_refuse_frames(const struct loader *l, struct error *e);
/** stack_numbers.c: reads the numbers of stacks in the events of a trace. Call it after the stacks are read. */
int load_stack_numbers(struct loader *l, struct error *e);

/** snapshot_at.c: reads the points, and finds the time for each image of the past. Call it after the images
 * are read. */
int load_points(struct loader *l, struct error *e);
/** snapshot_at.c: takes the cells of such images back to that time. Call it after the cells are read. */
int load_moments(struct loader *l, struct error *e);

#endif
