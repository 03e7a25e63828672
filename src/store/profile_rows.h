/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_PROFILE_ROWS_H
#define STORE_PROFILE_ROWS_H

/*
 * Stores and loads one row of each table: one function names the columns of a table in their order, for both.
 * References to other rows are row ids here, not indices into a profile.
 *
 * Runs in: the tool. Threads: pure functions of their arguments. Owns: nothing.
 * Invariant: a loaded row refers only to rows below the limits, or the statement is marked bad.
 */

#include "model/profile/profile.h"
#include "store/sql_statement.h"

/** The numbers of rows that may be referred to: ids are 0, 1, 2, ... without a gap. */
struct row_limits {
    uint64_t strings, images, modules, locations, stacks, threads, cells;
};

/* The part of a module that all images share. The rest is in its mappings. */
struct row_module {
    uint32_t path, build_id;
    uint64_t size_bytes;
};
struct row_mapping {
    uint32_t image, ordinal, module;
    uint64_t start, bias;
};

struct row_location {
    uint32_t module,
        image; /* image: of code outside every module, whose address says nothing elsewhere; else NONE */
    uint64_t address;
    bool exact;
};

struct row_line {
    uint32_t location, position;
    struct profile_line line;
};

/*
 * A stack is a leaf and the row of the calling stack. The first rows, one for each kind of end, have neither.
 */
#define ROW_STACK_ENDS (PROFILE_STACK_BROKEN + 1)
struct row_stack {
    uint32_t caller, location;
};

#define ROW_NO_MOMENT INT64_MAX
struct row_point {
    struct profile_point point;
    int64_t moment; /* ROW_NO_MOMENT: none */
};

struct row_moment_cell {
    int64_t moment;
    uint32_t cell;
    struct profile_sums allocated, freed;
};

/*
 * Each stores a row, or loads it. `l` is NULL: the row is stored; else the row is loaded, and refers only to rows below
 * these limits. The id of a loaded row must be `row`. The members change only when they are loaded.
 */
void row_image(struct sql *s, const struct row_limits *l, uint64_t row, struct profile_image *i);
void row_thread(struct sql *s, const struct row_limits *l, uint64_t row, struct profile_thread *t);
void row_module(struct sql *s, const struct row_limits *l, uint64_t row, struct row_module *m);
void row_mapping(struct sql *s, const struct row_limits *l, struct row_mapping *m);
void row_location(struct sql *s, const struct row_limits *l, uint64_t row, struct row_location *o);
void row_line(struct sql *s, const struct row_limits *l, struct row_line *n);
void row_stack(struct sql *s, const struct row_limits *l, uint64_t row, struct row_stack *k);
#define ROW_CELL      "id, image, stack, thread, size_class, period_bytes"
#define ROW_CELL_PEAK "peak_samples, peak_seen_bytes, peak_bytes, peak_count"
#define ROW_MOMENT_SUMS                                                                                      \
    "allocated_samples, allocated_seen_bytes, allocated_bytes, allocated_count,"                             \
    "freed_samples, freed_seen_bytes, freed_bytes, freed_count"
#define ROW_CELL_SUMS ROW_MOMENT_SUMS ", " ROW_CELL_PEAK ", temporary_samples, temporary_bytes"
/** The columns of a cell in their order: ROW_CELL, ROW_CELL_SUMS (which contains ROW_CELL_PEAK), the lifetimes. */
void row_cell(struct sql *s, const struct row_limits *l, uint64_t row, struct profile_cell *c);
void row_cell_sums(struct sql *s, const struct row_limits *l, struct profile_cell *c);
void row_cell_peak(struct sql *s, const struct row_limits *l, struct profile_cell *c);
void row_lifetimes(struct sql *s, const struct row_limits *l, struct profile_cell *c);
/* The image of a live sample or a recent free is that of its cell; it is a separate argument. */
void row_sample(struct sql *s, const struct row_limits *l, uint32_t *image, struct profile_sample *v);
void row_free(struct sql *s, const struct row_limits *l, uint32_t *image, struct profile_free *f);
void row_point(struct sql *s, const struct row_limits *l, struct row_point *q);
/** The key of a cell at a snapshot, and the columns after it, ROW_MOMENT_SUMS. */
void row_moment_key(struct sql *s, const struct row_limits *l, struct row_moment_cell *m);
void row_moment_sums(struct sql *s, const struct row_limits *l, struct row_moment_cell *m);
void row_unobserved(struct sql *s, const struct row_limits *l, struct profile_unobserved *u);

#endif
