/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_DIFF_CAPTURES_H
#define MODEL_DIFF_CAPTURES_H

/*
 * For profile_diff.c only: the values of each capture of a diff, where a side has several captures or is divided by
 * something. Captures are numbered from 0, those before first.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing; the values of captures belong to the diff.
 */

#include "model/profile/profile_diff.h"

static inline uint32_t diff_captures_number(const struct diff *d)
{
    return d->side[PROFILE_PAIR_BEFORE].n + d->side[PROFILE_PAIR_AFTER].n;
}
/** Gives the joint profile the cells of a capture: what they have of the metric is what they have allocated. */
void diff_captures_take(struct diff *d, enum rollup_metric metric, uint32_t capture);
/** Returns what the figures of a capture are divided by. */
double diff_captures_divisor(const struct diff *d, uint32_t capture);
/** Adds what a capture has to a value. */
void diff_captures_add(const struct diff *d, struct diff_value *v, uint32_t capture,
                       const struct rollup_value *of);
/** Sets all totals. */
void diff_captures_add_totals(struct diff *d);
void diff_captures_release(struct diff_value *v);
/** Returns whether all captures have the same. */
bool diff_captures_alike(const struct diff_value *v, bool count);
/** Sets the tail of the intervals of all rows, from the changes of the values that `shown` returns. */
void diff_captures_select(struct diff *d, const struct diff_value *(*shown)(const struct diff *d,
                                                                            const struct diff_row *row));
/** Returns the sums of the metric. */
struct profile_sums diff_sums_of(const struct profile_cell *c, enum rollup_metric metric);

#endif
