/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_RECORDING_WRITER_H
#define STORE_RECORDING_WRITER_H

/*
 * A recording while it is written, shared by the files that write it. recording.c keeps the file, image_intern.c what
 * images share, image_tables.c what they do not, timeline_point.c their history.
 *
 * Runs in: the tool. Threads: one at a time.
 * Invariant: once `failed`, nothing is written any more; so callers need not look at each step, only at the end.
 * What stands in memory may be ahead of the file then, and is of no use.
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
    /* From here on what rows hold matters, not only their keys. */
    WRITER_MERGE_MOMENT,
    WRITER_DELETE_MOMENT,
    WRITER_NO_MOMENT,
    WRITER_STATEMENTS
};

struct writer_cell {
    uint32_t row;
    uint64_t identity;                    /* what it counts: see image_tables.c */
    struct profile_cell stored;           /* as the table `cell` has it, with rows for indices */
    struct profile_sums allocated, freed; /* as the last moment has it */
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

/* One image that may be put again. */
struct writer_image {
    uint32_t row;
    struct VEC(struct writer_thread) threads;
    struct VEC(struct row_mapping) mappings;
    struct VEC(struct writer_cell) cells;
    struct writer_serials samples, frees; /* stored ones, ascending */
    struct VEC(struct writer_point) points;
};

struct recording {
    sqlite3 *db;
    char *path, *shown;
    int guard; /* the file, with a lock that tells other writers: closed after `db`, or SQLite's locks would go */
    bool began; /* a transaction */
    int failed; /* 0 or -errno */
    struct error why;
    struct sql statements[WRITER_STATEMENTS];
    struct VEC(struct rows_writer) rows;

    struct map strings, modules, locations, stacks; /* content -> row */
    struct VEC(uint8_t) named;                      /* of each location: how, see image_intern.c */
    uint32_t n_threads, n_cells;
    int64_t n_moments;

    struct map image_ids;                     /* -> row */
    struct VEC(struct writer_image *) images; /* by row; NULL: forgotten */
    bool has_lifetimes;
    uint64_t lifetime_ns[PROFILE_LIFETIMES - 1];
    uint64_t taken_ns;
    uint64_t images_dropped;
    double images_dropped_peak_bytes;
};

/** The statement, ready for its parameters, in a transaction. Never NULL; after a failure it goes nowhere. */
struct sql *writer_statement(struct recording *r, int statement);
/** Rows to put may wait for others, at the latest until writer_result(). */
void writer_run(struct recording *r, struct sql *s);
/** 0, or the failure with its line. */
int writer_result(struct recording *r, struct error *e);
void writer_put_number(struct recording *r, const char *key, int64_t number);
/** The image, or NULL: never put, or forgotten. */
struct writer_image *writer_image(struct recording *r, uint64_t image_id);
void writer_image_free(struct writer_image *i);

/* image_intern.c: the row of what has this content, stored if it is new. */

/** Rows for the indices of one profile, as far as they were asked for. */
struct intern {
    struct recording *r;
    const struct profile *p;
    uint32_t image;
    uint32_t *strings, *modules, *locations, *stacks; /* PROFILE_NONE: not asked for yet */
    /* The stack asked for last, outermost frame first: the next one mostly begins like it. */
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
/** Its names too, once it has some. */
uint32_t intern_location(struct intern *n, uint32_t location);
uint32_t intern_stack(struct intern *n, uint32_t stack);
/** Stores what every recording begins with: the empty string, the ends of stacks. */
void intern_begin(struct recording *r);

/** image_tables.c: as recording_put_image(), without forgetting. */
int writer_put_image(struct recording *r, const struct profile *p, bool last, struct error *e);

/* recording_file.c: the file, before and after SQLite has it. */

/** As recording_create(): the empty file's absolute path (heap) and descriptor. */
int writer_create_file(const char *path, bool force, char **absolute, int *guard, struct error *e);
/** True when what has this name now is what the descriptor has open. */
bool writer_file_unmoved(const char *absolute, int guard);
/** True when the -wal and -shm beside it belong to us: nobody put others there. */
bool writer_neighbours_ours(const char *absolute);

#endif
