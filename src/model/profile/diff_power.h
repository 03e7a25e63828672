/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_PROFILE_DIFF_POWER_H
#define MODEL_PROFILE_DIFF_POWER_H

/*
 * The changes that a comparison could have missed: the smallest growth that it finds in 19 of 20 cases, and the period
 * that is needed to find a smaller growth.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 *
 * The calculation
 *
 * Objects much smaller than the period P are the hardest case, and the one assumed: then k samples stand for k P bytes,
 * and k has a Poisson distribution. Of the memory before, the part that is not common to both sides has k = V / P^2
 * samples, V being the variance of its estimate (if it is exact, as many as its bytes have periods). A growth by D
 * makes the mean of the samples after k + D / P. Growth is found if the interval of the change (profile_diff.h) lies
 * above 0; so each number of samples before has a least number of samples after, and the chance of a find is a sum over
 * the former. D is the growth for which that chance is 95 %, on the average over the means that k leaves possible: the
 * gamma distribution of shape k + 1/2. From LARGE samples on, both distributions are taken as normal.
 *
 * If a side has several captures, the smallest growth is that of their spread (spread.h), or the one above, of the
 * mean of each side, whichever is larger.
 *
 * Counts of objects are treated alike, with the mean weight of a sample, V / (their estimated number), in place of P.
 */

#include "model/profile/profile_diff.h"

/**
 * Returns the smallest growth, in bytes or objects, that is found with a probability of 95 %, if `value` holds before.
 * 0: the figures are exact, and any growth is found. INFINITY: nothing was sampled, and the number of objects has no
 * bound.
 */
double diff_smallest_growth(const struct diff_value *v, bool count);

/**
 * Returns a period in bytes with which, if both sides are recorded with it, a growth by `growth` is found: a power of
 * two from 1 KiB on that is less than the larger period of the two, or 1, with which each growth is found. 0: the
 * present periods find it.
 */
uint64_t diff_period_for(const struct diff_value *v, bool count, double growth);

/**
 * Returns how many captures of each side find a growth by `growth`, if they spread as these do. 0: no number up to
 * SPREAD_CAPTURES_MOST, the growth permitted is 0, or there is one capture on each side.
 */
uint32_t diff_captures_for(const struct diff_value *v, bool count, double growth);

#endif
