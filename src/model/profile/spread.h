/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_SPREAD_H
#define MODEL_SPREAD_H

/*
 * The difference between two sides of which several captures were taken, as runs of a program or boots of a kernel,
 * with an interval that comes from how much the captures of each side differ among themselves. It does not know what
 * was measured.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 * Invariant of every interval: low <= value <= high.
 *
 * The interval of a difference
 *
 * With n captures on a side, mean m and sample variance s^2 (divisor n - 1), the difference m_after - m_before has the
 * standard error e and the degrees of freedom f of Welch ("The generalization of 'Student's' problem when several
 * different population variances are involved", Biometrika 34 (1947) 28-35) and Satterthwaite (1946):
 *
 *     v = s^2 / n of each side       e^2 = v_before + v_after
 *     f = e^4 / (v_before^2 / (n_before - 1) + v_after^2 / (n_after - 1))
 *     low, high = m_after - m_before -/+ t(f) e
 *
 * where t(f) is the quantile of Student's distribution, 0.975 for 95 %. The two sides need not vary alike. Means and
 * not medians: only means of rows add up to the mean of their sum, and the median of three captures has one and a
 * half times the variance of their mean. A side with one capture has no spread of its own: it is taken to vary as the
 * other side does, s^2 (1 / n_before + 1 / n_after) with the degrees of freedom of the other side.
 *
 * The captures must be independent, and their figures near to normally distributed. If there are few captures,
 * coverage differs from 95 % as that of any t test; tests/unit/test_spread.c holds it to 90 % to 99 % for 3 to 10
 * captures a side, normal and uniform figures, equal variances and variances that differ by a factor of 256. With two
 * captures on a side it can be 85 %. If no capture of a side differs from the others, in both sides, the interval has
 * no width: the figure is taken to be a constant of the side. That cannot be known: a figure that has one of two
 * values at random, with equal chances, looks like this and changed with a chance of 2 / 2^(n_before + n_after), 3 %
 * with three captures a side, 0.2 % with five; and that is the worst case of all figures with two values.
 *
 * Many rows
 *
 * Of a thousand rows in which nothing has changed, 50 intervals of 95 % would miss 0. So rows are selected by the
 * procedure of Benjamini and Hochberg ("Controlling the false discovery rate", Journal of the Royal Statistical
 * Society B 57 (1995) 289-300): of m rows, R are selected, R being the largest number for which R rows have p <= 0.05
 * R / m. The intervals of all m rows are those of 1 - 0.05 R / m (at least 1 - 0.05 / m), by Benjamini and Yekutieli
 * ("False discovery rate-adjusted multiple confidence intervals for selected parameters", Journal of the American
 * Statistical Association 100 (2005) 71-81). Then
 *   - a row is selected if, and only if, its interval does not contain 0;
 *   - of the rows that are selected, 5 % on average have not changed at all, or an interval that misses the true
 *     change. If nothing has changed, no row is selected in 19 of 20 comparisons.
 * This holds for independent rows, and for rows that rise and fall together.
 */

#include <stddef.h>
#include <stdint.h>

#include "model/profile/estimate.h"

#define SPREAD_TAIL 0.025 /* on either side of an interval of 95 % */

/** A difference; all zero: it is 0, exactly. */
struct spread_change {
    double value;
    double error;   /* its standard error */
    double freedom; /* degrees of freedom; 0: there is no spread, as all captures of each side are alike */
};

/** Returns the mean of `n` figures. If all are alike, it is exactly their value. */
double spread_mean(const double *of, uint32_t n);
/** Returns the mean of `after` less `factor` times the mean of `before`. One of the sides must have two captures. */
struct spread_change spread_compare(const double *before, uint32_t n_before, const double *after,
                                    uint32_t n_after, double factor);
/** Returns the interval that misses the true difference with a probability of `tail` on either side. */
struct interval spread_interval(const struct spread_change *c, double tail);
/** Returns the interval of the mean of one side; of one capture alone it has no bounds: (-INFINITY, INFINITY). */
struct interval spread_mean_interval(const double *of, uint32_t n, double tail);
/** Returns the probability of so large a difference, up or down, if there is none. */
double spread_chance(const struct spread_change *c);
/**
 * Returns the smallest growth that would be found (the interval of 95 % lies above 0) with a probability of 95 %, if
 * the standard error is the one that was seen: the power of the t test, by the distribution of the estimated standard
 * error. (Of three captures a side it is 89 %, as the degrees of freedom vary, too.)
 */
double spread_smallest_growth(const struct spread_change *c);

#define SPREAD_CAPTURES_MOST 1000
/**
 * Returns the least number of captures of each side that would find that growth, if they spread as these do; 0: none up
 * to SPREAD_CAPTURES_MOST.
 */
uint32_t spread_captures_for(const double *before, uint32_t n_before, const double *after, uint32_t n_after,
                             double growth);

/** Returns the probability that a variable of Student's distribution exceeds `t`, which is not negative. */
double spread_student_tail(double t, double freedom);
/** Returns the t that is exceeded with the probability `tail`, at most 0.5. */
double spread_student_quantile(double tail, double freedom);

/**
 * Returns the tail of the intervals of `n` rows with these chances: 0.05 R / n / 2. Sorts the chances. 0 rows give
 * SPREAD_TAIL.
 */
double spread_select(double *chances, size_t n);

#endif
