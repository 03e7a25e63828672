/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_RECORDING_WRITER_H
#define STORE_RECORDING_WRITER_H

/*
 * The state of a recording that is being written, shared by the files that write it. recording.c manages the
 * file, image_intern.c the data that images share, image_tables.c the data of one image, timeline_point.c
 * their history.
 *
 * Runs in: the tool. Threads: one at a time.
 * Invariant: once `failed` is set, nothing is written any more. So callers check only at the end, not after
 * each step. The state in memory may then be ahead of the file, and is of no use.
 */

#include "base/hash_map.h"
#include "base/vec.h"
#include "store/profile_rows.h"
#include "store/recording.h"
#include "store/schema.h"
#include "store/table_rows.h"

#include <sys/types.h>

enum writer_statement {
    /* 0 .. SCHEMA_TABLES - 1: puts a row into that table */
    WRITER_DELETE_SAMPLE = SCHEMA_TABLES,
    WRITER_DELETE_FREE,
    WRITER_DELETE_POINT,
    /* From here on the statements use contents of rows, not only their keys. */
    WRITER_MERGE_MOMENT,
    WRITER_DELETE_MOMENT,
    WRITER_NO_MOMENT,
    WRITER_STATEMENTS
};

struct writer_cell {
    uint32_t row;
    uint64_t identity;                    /* identifies what it counts: see image_tables.c */
    struct profile_cell stored;           /* as in the table `cell`, with row ids for indices */
    struct profile_sums allocated, freed; /* as in the last snapshot */
};
struct writer_thread {
    uint32_t row;
    struct profile_thread stored;
};
struct writer_point {
    uint64_t time_ns;
    int64_t moment; /* ROW_NO_MOMENT: none */
};
struct writer_serials VEC(uint64_t);

/* An image that may be put again. */
struct writer_image {
    uint32_t row;
    struct VEC(struct writer_thread) threads;
    struct VEC(struct row_mapping) mappings;
    struct VEC(struct writer_cell) cells;
    struct writer_serials samples, frees; /* serials of the stored ones, ascending */
    struct VEC(struct writer_point) points;
};

struct recording {
    sqlite3 *db;
    char *path, *shown;
    /* the file, with a lock that other writers see. It is closed after `db`, because closing it would drop
     * SQLite's locks */
    int guard;
    bool began; /* a transaction is open */
    int failed; /* 0 or -errno */
    struct error why;
    struct sql statements[WRITER_STATEMENTS];
    struct VEC(struct rows_writer) rows;

    struct map strings, modules, locations, stacks; /* maps from content to row */
    struct VEC(uint8_t) named;                      /* how each location is named, see image_intern.c */
    uint32_t n_threads, n_cells;
    int64_t n_moments;

    struct map image_ids;                     /* -> row */
    struct VEC(struct writer_image *) images; /* by row; NULL: put with `last` */
    bool has_lifetimes;
    uint64_t lifetime_ns[PROFILE_LIFETIMES - 1];
    uint64_t taken_ns;
    uint64_t images_dropped;
    double images_dropped_peak_bytes;
};

/** Returns the statement, ready for its parameters, in a transaction. Never NULL; after a failure it has no
 * effect. */
struct sql *writer_statement(struct recording *r, int statement);
/** Runs the statement. Rows to insert may wait for others, at the latest until writer_result() or a commit. */
void writer_run(struct recording *r, struct sql *s);
/** Inserts the rows that wait. Returns 0, or the error with its line. */
int writer_result(struct recording *r, struct error *e);
/** Returns 0, or the first error so far. Unlike writer_result(), does not insert the rows that wait. */
int writer_failure(const struct recording *r, struct error *e);
void writer_put_number(struct recording *r, const char *key, int64_t number);
/** Returns the image, or NULL if it was never put, or put with `last`. */
struct writer_image *writer_image(struct recording *r, uint64_t image_id);
void writer_image_free(struct writer_image *i);

/* image_intern.c: functions that return the row with this content, and store it if it is new. */

/** Maps from indices of one profile to rows, filled as needed. */
struct intern {
    struct recording *r;
    const struct profile *p;
    uint32_t image;
    uint32_t *strings, *modules, *locations, *stacks; /* PROFILE_NONE: not needed yet */
    /* The previous stack, outermost frame first: the next one usually begins like it. */
    struct intern_frame {
        uint32_t location, row;
    } last[RECORDING_DEPTH_MAX];
    uint32_t last_depth, last_end;
};

void intern_init(struct intern *n, struct recording *r, const struct profile *p, uint32_t image);
void intern_release(struct intern *n);
uint32_t intern_text(struct recording *r, const char *text);
uint32_t intern_string(struct intern *n, uint32_t string);
uint32_t intern_module(struct intern *n, uint32_t module);
/** Also stores its names, once it has some. */
uint32_t intern_location(struct intern *n, uint32_t location);
uint32_t intern_stack(struct intern *n, uint32_t stack);
/** Stores the rows with which every recording begins: the empty string, the ends of stacks. */
void intern_begin(struct recording *r);

/** stack_numbers.c: stores the numbers that the image's stacks have in the events of its trace. */
int writer_put_stack_numbers(struct intern *n, struct error *e);

/** image_tables.c: like recording_put_image(), without the bookkeeping for `last`. */
int writer_put_image(struct recording *r, const struct profile *p, bool last, struct error *e);

/* recording_file.c: the file before and after SQLite uses it. */

/** Like recording_create(). Returns the absolute path of the empty file (heap) and its descriptor. */
int writer_create_file(const char *path, bool force, char **absolute, int *guard, struct error *e);
/** Returns true when the path still names the file that the descriptor has open. */
bool writer_file_unmoved(const char *absolute, int guard);
/** Returns true when the -wal and -shm beside it belong to us, so that nobody has replaced them. */
bool writer_neighbours_ours(const char *absolute);

#endif
