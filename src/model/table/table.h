/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_TABLE_H
#define MODEL_TABLE_H

/*
 * A table: typed columns and rows, the shape of every list that is not a profile. It knows neither where its values
 * come from nor how they are shown.
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
    TABLE_LINES,     /* texts one below the other: a stack, innermost first */
    TABLE_HISTOGRAM, /* how many values there were in each power of two of the unit */
};

/** Slots of a histogram: number 0 counts values of 0 and 1, number i those from 2^i to below 2^(i + 1). */
#define TABLE_SLOTS 64u

/** What a number counts. In JSON it ends the key: live_bytes; of rates, what counts in a second: live_bytes_per_s. */
enum table_unit {
    TABLE_PLAIN, /* no unit, and digits as they are: a pid */
    TABLE_COUNT,
    TABLE_BYTES,
    TABLE_DURATION, /* ns */
    TABLE_INSTANT,  /* ns since 1970, UTC */
    TABLE_PERCENT,
};

struct table_column {
    const char *name; /* lower case, words joined by _ : the JSON key without unit; borrowed */
    enum table_unit unit;
    enum table_type type;
    bool
        wrap; /* a text that is worth several lines when there is no room, and nothing at all where it is not known */
    bool rare;  /* not on the screen when no row has it */
    bool gives; /* a text that is shortened where there is no room, as others are that give, too */
    bool story; /* of lines: what people read instead of the row, when rows come one by one; not in JSON */
    /* Of lines: what each one has, parted by tabs, as in "pid,comm:text": objects in JSON, nothing on a screen. */
    const char *fields;
    unsigned width; /* of texts: none is longer; 0: it is not known */
    unsigned drop;  /* 0: stays; else those with the largest number leave a narrow screen first */
};

struct table_value {
    bool known;
    bool least; /* of a whole: it may be more */
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
    const char *name; /* what it lists: the JSON schema is "allium-NAME"; borrowed */
    uint32_t version; /* of that schema */
    const struct table_column *columns;
    uint32_t n_columns;
    uint64_t hidden;                       /* bits of columns (of the first 64) that views leave out */
    struct VEC(struct table_value) values; /* row after row */
};

/** Values of the column take lines of their own, below those that stand side by side. */
static inline bool table_stands_below(const struct table *t, uint32_t column)
{
    return t->columns[column].type == TABLE_LINES || t->columns[column].type == TABLE_HISTOGRAM;
}
/** The columns are borrowed, and outlive the table. Never NULL. */
struct table *table_new(const char *name, uint32_t version, const struct table_column *columns,
                        uint32_t n_columns);
void table_free(struct table *t);
/** Begins a row, of values that are not known. */
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
 * Appends the name under which JSON and SQL know the column: "live_bytes", "net_bytes_per_s" of one that is called
 * "net_per_s".
 */
void table_add_key(struct buf *b, const struct table_column *c);
/** Forgets all rows. */
void table_clear(struct table *t);
enum table_order {
    TABLE_USUAL, /* numbers largest first, texts by their letters */
    TABLE_MOST_FIRST,
    TABLE_LEAST_FIRST,
};
/** Orders rows by a column; what is not known comes last. Equal ones stay in order. */
void table_sort(struct table *t, uint32_t column, enum table_order order);
/** Appends all rows of `from`, which has the same columns, and is empty then. */
void table_move_rows(struct table *to, struct table *from);
/** Drops rows from number `rows` on. */
void table_cut(struct table *t, uint32_t rows);
/** Drops the rows for which `keeps` is false. */
void table_keep(struct table *t, bool (*keeps)(const struct table *t, uint32_t row, void *arg), void *arg);
/** A value as a number, whatever its type; NAN: it is none, or not known. */
double table_number(const struct table *t, uint32_t row, uint32_t column);

/* Each sets a value of the last row; the column must be of that type. A NULL text is one that is not known. */
void table_text(struct table *t, uint32_t column, const char *text); /* TABLE_LINES too: lines end with \n */
void table_whole(struct table *t, uint32_t column, uint64_t value);  /* TABLE_ADDRESS too */
void table_at_least(struct table *t, uint32_t column,
                    uint64_t value); /* TABLE_WHOLE; in JSON, the number alone */
void table_signed(struct table *t, uint32_t column, int64_t value);
void table_real(struct table *t, uint32_t column, double value);
void table_estimate(struct table *t, uint32_t column, const struct estimate *value);
void table_flag(struct table *t, uint32_t column, bool value);
/** The first `n` slots of a histogram, at most TABLE_SLOTS; the others are empty. */
void table_histogram(struct table *t, uint32_t column, const uint64_t *slots, uint32_t n);
/** The slot that counts such a value. */
static inline uint32_t table_slot(uint64_t value)
{
    return value > 1 ? 63u - (uint32_t)__builtin_clzll(value) : 0;
}

#endif
