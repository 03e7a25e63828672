/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ORDER_STATISTICS_H
#define MODEL_ORDER_STATISTICS_H

/*
 * Quantiles of a sample, and the interval of its median. Nothing is assumed of the distribution. Times of code have
 * long tails, and clocks have steps: means and normal intervals would be of little use.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include <stddef.h>

#include "model/profile/estimate.h"

/** Sorts figures, the smallest first. */
void order_sort(double *figures, size_t n);
/**
 * Returns the smallest of the sorted figures that at least this share (0 to 1) of all do not exceed: 0.9 for the 90th
 * percentile (the nearest rank). NAN: there are none.
 */
double order_quantile(const double *sorted, size_t n, double share);
/**
 * Returns the median of sorted figures: the middle one, or the mean of the two in the middle. NAN: there are none.
 */
double order_median(const double *sorted, size_t n);
/**
 * Returns the interval from one sorted figure to another that contains the median of the distribution with a
 * probability of at least 95 %, if the figures are independent: the number of figures above the median has the
 * distribution of the number of heads among n coins. (H. A. David and H. N. Nagaraja, Order Statistics, 2003, section
 * 7.1.) Of fewer than 6 figures it has no bounds.
 */
struct interval order_median_interval(const double *sorted, size_t n);

#endif
