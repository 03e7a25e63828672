/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_SUM_CELLS_H
#define BASE_SIGSAFE_SUM_CELLS_H

/*
 * The figures of one key of `allium trace --sum`: how many values, their sum, the smallest, the largest, and how many
 * lie in each power of two. Zeros are the figures of no value.
 *
 * Any number of threads and signal handlers add to one struct at once, each by atomic additions: no value is lost or
 * counted twice. A reader meanwhile may find a value in one figure and not yet in another.
 *
 * Runs in: target, tool. Threads: any, signal handlers included; no lock.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum sum_type {
    SUM_NONE,     /* events are only counted */
    SUM_UNSIGNED, /* uint64_t */
    SUM_SIGNED,   /* int64_t */
    SUM_REAL,     /* double */
    SUM_TYPES
};

/* Slot 0 counts the values from 0 to below 2, slot i those from 2^i to below 2^(i + 1), the last one those below 0. */
#define SUM_SLOTS         65u
#define SUM_SLOT_NEGATIVE 64u

struct sum_cells {
    uint64_t count; /* events that have no value; all others are in `slots` */
    /* the sum: a number of 128 bits, `high` being the upper ones; SUM_REAL: `low` are the bits of a double */
    uint64_t low, high;
    /* the greatest sum_order() and the greatest ~sum_order() of all values: both are 0 if there is no value */
    uint64_t most, least;
    uint64_t slots[SUM_SLOTS];
    uint64_t unused[2];
};
_Static_assert(sizeof(struct sum_cells) == 576, "whole lines of the cache");
/* The bytes of figures without values, which lack the slots. */
#define SUM_COUNT_BYTES 64u

static inline double sum_real(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint64_t sum_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/** Maps a value to an unsigned number that sorts as the values of the type do. */
static inline uint64_t sum_order(enum sum_type type, uint64_t bits)
{
    const uint64_t sign = UINT64_C(1) << 63;
    if (type == SUM_SIGNED)
        return bits ^ sign;
    return type == SUM_REAL ? (bits & sign ? ~bits : bits | sign) : bits;
}

/** The inverse of sum_order(). */
static inline uint64_t sum_value(enum sum_type type, uint64_t order)
{
    const uint64_t sign = UINT64_C(1) << 63;
    if (type == SUM_SIGNED)
        return order ^ sign;
    return type == SUM_REAL ? (order & sign ? order & ~sign : ~order) : order;
}

static inline uint32_t sum_slot(enum sum_type type, uint64_t bits)
{
    if (type == SUM_REAL) {
        const double value = sum_real(bits);
        if (value < 0)
            return SUM_SLOT_NEGATIVE;
        bits = value < 2 ? 0 : value < 0x1p63 ? (uint64_t)value : UINT64_C(1) << 63;
    } else if (type == SUM_SIGNED && (int64_t)bits < 0) {
        return SUM_SLOT_NEGATIVE;
    }
    return bits > 1 ? 63u - (uint32_t)__builtin_clzll(bits) : 0;
}

static inline void sum_raise(uint64_t *most, uint64_t to)
{
    uint64_t now = __atomic_load_n(most, __ATOMIC_RELAXED);
    while (now < to &&
           !__atomic_compare_exchange_n(most, &now, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static inline void sum_add_real(uint64_t *to, double value)
{
    uint64_t now = __atomic_load_n(to, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(to, &now, sum_bits(sum_real(now) + value), false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
        ;
}

/* Adds the number of 128 bits `high`:`low` to the sum. */
static inline void sum_add_whole(struct sum_cells *c, uint64_t low, uint64_t high)
{
    const uint64_t before = __atomic_fetch_add(&c->low, low, __ATOMIC_RELAXED);
    high += before + low < before;
    if (high)
        __atomic_fetch_add(&c->high, high, __ATOMIC_RELAXED);
}

/** Counts an event, with a value of this type in `bits`. A double that is no number has no value. */
static inline void sum_cells_add(struct sum_cells *c, enum sum_type type, uint64_t bits)
{
    if (type == SUM_NONE || (type == SUM_REAL && __builtin_isnan(sum_real(bits)))) {
        __atomic_fetch_add(&c->count, 1, __ATOMIC_RELAXED);
        return;
    }
    const uint64_t order = sum_order(type, bits);
    if (type == SUM_REAL)
        sum_add_real(&c->low, sum_real(bits));
    else
        sum_add_whole(c, bits, type == SUM_SIGNED && (int64_t)bits < 0 ? UINT64_MAX : 0);
    sum_raise(&c->most, order);
    sum_raise(&c->least, ~order);
    __atomic_fetch_add(&c->slots[sum_slot(type, bits)], 1, __ATOMIC_RELAXED);
}

/** Adds figures of the same type. */
static inline void sum_cells_merge(struct sum_cells *to, const struct sum_cells *from, enum sum_type type)
{
    to->count += from->count;
    if (type == SUM_REAL)
        sum_add_real(&to->low, sum_real(from->low));
    else
        sum_add_whole(to, from->low, from->high);
    sum_raise(&to->most, from->most);
    sum_raise(&to->least, from->least);
    for (uint32_t i = 0; i < SUM_SLOTS; i++)
        to->slots[i] += from->slots[i];
}

/** Returns the number of values. */
static inline uint64_t sum_cells_values(const struct sum_cells *c)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < SUM_SLOTS; i++)
        n += c->slots[i];
    return n;
}

#endif
