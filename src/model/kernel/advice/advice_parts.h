/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ADVICE_PARTS_H
#define MODEL_ADVICE_PARTS_H

/*
 * Shared by the parts of advice.c only: what makes a measure.
 */

#include "base/units.h"
#include "model/kernel/advice/advice.h"

/** A size in a text; valid up to the end of the enclosing block. */
#define ADVICE_SIZE(bytes) units_format_size((char[UNITS_TEXT_BYTES]){0}, (double)(bytes))

/**
 * Adds a measure that saves this much, and returns it; NULL if that is less than 4 KiB. It is valid until the next one
 * is added.
 */
struct advice_measure *advice_add(struct advice *a, enum advice_kind kind, int64_t low_bytes,
                                  uint64_t high_bytes);
/** Set the texts of a measure, and add a row to it. */
void advice_change(struct advice_measure *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void advice_formula(struct advice_measure *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void advice_cost(struct advice_measure *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void advice_row(struct advice_measure *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** The bytes of the measure belong to a call, or to a cache. */
void advice_claim_call(struct advice_measure *m, size_t call);
void advice_claim_cache(struct advice_measure *m, const struct advice_input *in, size_t cache);
/** Adds a sentence on what could not be judged. */
void advice_unknown(struct advice *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline uint64_t advice_less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}
/** Returns a / b, rounded up. */
static inline uint64_t advice_slabs_for(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}
/** Returns a * b, at most a large number that sums of many do not overflow. */
static inline uint64_t advice_times(uint64_t a, uint64_t b)
{
    const uint64_t most = UINT64_C(1) << 46;
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) || product > most ? most : product;
}
/** Returns the smallest order whose pages have room for the bytes. */
static inline unsigned advice_order_of(uint64_t page_bytes, uint64_t bytes)
{
    unsigned order = 0;
    while (order < 20 && page_bytes << order < bytes)
        order++;
    return order;
}

void advice_find_objects(struct advice *a, const struct advice_input *in);
void advice_find_slabs(struct advice *a, const struct advice_input *in);
void advice_find_boot(struct advice *a, const struct advice_input *in);
void advice_find_code(struct advice *a, const struct advice_input *in);

#endif
