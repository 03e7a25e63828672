/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_RECORDING_READER_H
#define STORE_RECORDING_READER_H

/*
 * A recording while it is read, shared by the files that read it. recording_open.c opens it, profile_load.c reads the
 * profile, snapshot_at.c takes it back to an earlier time, recording_summary.c reads the rest.
 *
 * Runs in: the tool. Threads: one at a time for one reader. Owns: the connection, and a copy if one was made.
 * Invariant: one transaction from reader_open() on: everything read is of one moment.
 */

#include "base/hash_map.h"
#include "store/account_tables.h"
#include "store/profile_load.h"
#include "store/profile_rows.h"
#include "store/schema.h"

struct reader {
    sqlite3 *db;
    char *shown;              /* the path, for messages */
    char *folder;             /* of the copy; NULL: none was made */
    uint64_t bytes;           /* of all pages: all texts are no larger, or one is pointed to many times */
    uint64_t text_left_bytes; /* of that */
    uint64_t frames_max;      /* of all stacks */
    bool unwritten;           /* no process is writing the file */
    unsigned without;         /* parts that are left out; see profile_load.h */
    struct scan *each;        /* whose rows are handed over now; NULL: none's */
};

int reader_open(struct reader *r, const char *path, struct error *e);
/** Takes over a connection on which nothing was done yet (a fuzzer's): hardens it and checks what it is. */
int reader_attach(struct reader *r, sqlite3 *db, const char *shown, struct error *e);
void reader_close(struct reader *r);
/** As recording_load(). */
int reader_load(struct reader *r, const uint64_t *at_ns, struct profile **p, struct error *e);
/** As recording_load_rows(). */
int reader_load_rows(struct reader *r, const char *name, struct table *t,
                     void (*each)(void *arg, uint64_t time_ns), void *arg, struct error *e);
/** As recording_load_accounts(). */
int reader_load_accounts(struct reader *r, struct accounts *a, struct alloc_texts *texts, const char *kind,
                         const uint64_t *at_ns, struct error *e);
/** As recording_summarize(); to be released in any case. */
int reader_summarize(struct reader *r, struct recording_summary *s, struct error *e);

struct scan;
/** What they get are columns of a row, which they may mark as bad: that ends the walk. */
typedef void reader_take(void *arg, struct scan *s);
typedef bool reader_wants(void *arg, struct scan *s);

/** One walk through a table. */
struct scan {
    struct reader *r;
    enum schema_table table;
    struct sql row;
    int64_t last[2]; /* key of the row before */
    uint64_t n;      /* rows so far, with this one */
    bool falls;      /* newest first */
    reader_wants *wants;
    reader_take *take;
    void *arg;
};

/** Begins a walk in the order of the key; reader_scan_end() is due in any case. */
void reader_scan(struct scan *s, struct reader *r, enum schema_table table);
/** The same of some columns, and of the rows that a clause ("WHERE ...") names, which may have parameters. */
void reader_scan_some(struct scan *s, struct reader *r, enum schema_table table, const char *columns,
                      const char *where);
/** Begins the walk again, with this for its first parameter. */
void reader_scan_again(struct scan *s, int64_t parameter);
/** True: on a row, its columns can be got. False: the end, damage, or an error. */
bool reader_scan_row(struct scan *s);
/** The next column of the row as a text. */
const char *reader_scan_text(struct scan *s);
/** What went wrong, with its line; 0: nothing. */
int reader_scan_end(struct scan *s, struct error *e);

/**
 * A whole walk at once: each row is handed to `take`. The values go there as arguments of a function that the
 * statement's WHERE calls, from where they lie in SQLite: that costs about half of what they do through
 * reader_scan_row().
 */
struct each {
    enum schema_table table;
    const char *columns; /* NULL: all; without `wants` those of the key are the first */
    const char *where;   /* a condition that rows must meet; its parameter ?1 is `parameter`. NULL: none */
    int64_t parameter;
    bool falls; /* from the highest key on */
    reader_wants
        *wants; /* NULL: all. Else it gets the key, and only of rows that it wants the columns are read */
    reader_take *take;
    void *arg;
};
/** As reader_scan_end(). */
int reader_each(struct reader *r, const struct each *of, struct error *e);

/* Each part of a recording read so far, by row. */
struct loaded_image {
    uint32_t index;          /* in the profile; PROFILE_NONE: left out */
    bool past;               /* to be shown as it was at `moment_ns` */
    uint64_t cut_ns;         /* what was born or freed later is left out; UINT64_MAX: nothing */
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
    bool recalled;  /* a moment has told of it */
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
    struct map moments;  /* those that count -> row of the image */
    int64_t last_moment; /* the largest of them; -1: none */
};

/** snapshot_at.c: points, and how far each image of the past goes. Needs the images. */
int load_points(struct loader *l, struct error *e);
/** snapshot_at.c: takes the cells of such images back to that time. Needs the cells. */
int load_moments(struct loader *l, struct error *e);

#endif
