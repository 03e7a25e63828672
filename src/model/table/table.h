/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_TABLE_H
#define MODEL_TABLE_H

/*
 * A table: typed columns and rows, the form of every list that is not a profile. It knows neither where its
 * values come from nor how they are shown.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its rows and their texts, until table_free().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "model/profile/estimate.h"

enum table_type {
    TABLE_TEXT,
    TABLE_WHOLE,     /* uint64_t */
    TABLE_SIGNED,    /* int64_t */
    TABLE_REAL,      /* double */
    TABLE_ESTIMATE,  /* struct estimate, shown with its interval */
    TABLE_FLAG,      /* bool */
    TABLE_ADDRESS,   /* uint64_t */
    TABLE_LINES,     /* lines of text, one below the other: a stack, innermost first */
    TABLE_HISTOGRAM, /* for each power of two of the unit, the number of values */
};

/** Slots of a histogram: slot 0 counts the values 0 and 1, slot i the values from 2^i to below 2^(i + 1). */
#define TABLE_SLOTS 64u

/** What a number counts. In JSON the unit ends the key: live_bytes; for a rate, live_bytes_per_s. */
enum table_unit {
    TABLE_PLAIN, /* no unit, and plain digits: a pid */
    TABLE_COUNT,
    TABLE_BYTES,
    TABLE_DURATION, /* ns */
    TABLE_INSTANT,  /* ns since 1970, UTC */
    TABLE_PERCENT,
};

struct table_column {
    const char *name; /* lower case, words joined by _ : the JSON key without the unit; borrowed */
    enum table_unit unit;
    enum table_type type;
    const char *header; /* the name on a screen, where it is shorter than the key; NULL: `name` */
    /* a text that continues in further lines if there is no room; unknown texts are shown as nothing */
    bool wrap;
    bool hide_if_empty; /* hidden on a screen if no row has a value */
    /* a text that is shortened if there is no room; several such columns are shortened together */
    bool shrinkable;
    /* for TABLE_LINES: the text that is shown in place of the row when each event is shown at once; not in JSON */
    bool report_text;
    /* For TABLE_LINES: the parts of each line, separated by tabs, as in "pid,comm:text". Objects in JSON, no
     * effect on a screen. */
    const char *fields;
    unsigned width; /* for texts: the greatest length; 0: not known */
    /* 0: always shown; else the columns with the largest number are dropped first on a narrow screen */
    unsigned drop_rank;
    /* If rows are merged: of a number, the largest one counts, and not the sum; a text is that of the row with the
     * largest weight, also if it is not known there. */
    bool merge_largest;
    /* ... a text is words with this between them, and has all words of both; '\0': see table_merge() */
    char merge_words;
};

struct table_value {
    bool known;
    bool least;  /* of a number: a lower bound */
    bool unsure; /* of a number: it may be too high or too low */
    union {
        char *text;
        uint64_t whole; /* addresses too */
        int64_t negative_too;
        double real;
        struct estimate *estimate;
        uint64_t *slots; /* TABLE_SLOTS of them */
        bool flag;
    };
};

struct table {
    const char *name; /* what it lists; the JSON schema is "allium-NAME"; borrowed */
    uint32_t version; /* of that schema */
    const struct table_column *columns;
    uint32_t n_columns;
    uint64_t hidden;                       /* bits of columns (the first 64) that views leave out */
    uint64_t keys;                         /* of those that tell rows apart: a narrow screen has them, too */
    struct VEC(struct table_value) values; /* row by row */
};

/** Returns whether values of the column take lines of their own, below the values that stand side by side. */
static inline bool table_stands_below(const struct table *t, uint32_t column)
{
    return t->columns[column].type == TABLE_LINES || t->columns[column].type == TABLE_HISTOGRAM;
}
/** The columns are borrowed and must outlive the table. Never returns NULL. */
struct table *table_new(const char *name, uint32_t version, const struct table_column *columns,
                        uint32_t n_columns);
void table_free(struct table *t);
/** Begins a row of unknown values. */
void table_row(struct table *t);
uint32_t table_rows(const struct table *t);
static inline const struct table_value *table_at(const struct table *t, uint32_t row, uint32_t column)
{
    return &t->values.at[(size_t)row * t->n_columns + column];
}

static inline bool table_hides(const struct table *t, uint32_t column)
{
    return column < 64 && t->hidden >> column & 1;
}
/**
 * Appends the key of the column in JSON and SQL: "live_bytes"; "net_bytes_per_s" for a column "net_per_s".
 */
void table_add_key(struct buf *b, const struct table_column *c);
/** Removes all rows. */
void table_clear(struct table *t);
enum table_order {
    TABLE_USUAL, /* numbers largest first, texts in alphabetical order */
    TABLE_MOST_FIRST,
    TABLE_LEAST_FIRST,
};
/** Sorts rows by a column, stably; unknown values come last. */
void table_sort(struct table *t, uint32_t column, enum table_order order);
/** Moves all rows of `from`, which has the same columns, to the end of `to`. */
void table_move_rows(struct table *to, struct table *from);
/** Appends copies of all rows of `from`, which has the same columns. */
void table_copy_rows(struct table *to, const struct table *from);
/** Removes the rows from number `rows` on. */
void table_cut(struct table *t, uint32_t rows);
/** Removes the rows for which `keeps` returns false. */
void table_keep(struct table *t, bool (*keeps)(const struct table *t, uint32_t row, void *arg), void *arg);
/** Makes a value of any row unknown, and returns it to be set. */
struct table_value *table_cell(struct table *t, uint32_t row, uint32_t column);
/** Returns a value as a number, whatever its type; NAN: it is not a number, or not known. */
double table_number(const struct table *t, uint32_t row, uint32_t column);

/*
 * Each of these sets a value of the last row; the column must have that type. A NULL text is an unknown one.
 */
void table_text(struct table *t, uint32_t column, const char *text); /* TABLE_LINES too: lines end with \n */
void table_whole(struct table *t, uint32_t column, uint64_t value);  /* TABLE_ADDRESS too */
void table_at_least(struct table *t, uint32_t column,
                    uint64_t value); /* TABLE_WHOLE; in JSON, the number alone */
/** Mark the number of the last row as a lower bound, or as unsure. Unknown values, and JSON, stay as they are. */
void table_mark_least(struct table *t, uint32_t column);
void table_mark_unsure(struct table *t, uint32_t column);
void table_signed(struct table *t, uint32_t column, int64_t value);
void table_real(struct table *t, uint32_t column, double value);
void table_estimate(struct table *t, uint32_t column, const struct estimate *value);
void table_flag(struct table *t, uint32_t column, bool value);
/** Sets the first `n` slots of a histogram, at most TABLE_SLOTS; the others are 0. */
void table_histogram(struct table *t, uint32_t column, const uint64_t *slots, uint32_t n);
/** Returns the slot that counts such a value. */
static inline uint32_t table_slot(uint64_t value)
{
    return value > 1 ? 63u - (uint32_t)__builtin_clzll(value) : 0;
}

#endif
