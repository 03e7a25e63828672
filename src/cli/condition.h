/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_CONDITION_H
#define CLI_CONDITION_H

/*
 * --fail-if: METRIC+AMOUNT, as in live+10%, peak+1GiB or allocations+20%.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing; the text belongs to the caller.
 */

#include <stdbool.h>

#include "base/error.h"
#include "model/profile/profile_diff.h"

struct condition {
    const char *text;
    enum rollup_sort sort; /* the metric, and whether its bytes or objects count */
    double share;          /* share of the value before: 0.1; or */
    double amount;         /* bytes or objects, if the share is 0 */
};

enum condition_answer {
    CONDITION_NOT_MET,
    CONDITION_OPEN, /* the estimate exceeds it, but that may be chance */
    CONDITION_UNDECIDED, /* it may be exceeded, and so small a growth cannot be told from chance with these samples */
    CONDITION_MET, /* it is exceeded with a certainty of 97.5 % */
};

/** Returns 0, or -EINVAL with a line that says what is wrong and in which column, counted from 1. */
int condition_parse(struct condition *c, const char *text, struct error *e);
/** Returns the value of the condition's metric in both sources. */
const struct diff_value *condition_value(const struct condition *c, const struct diff *d);
/** Returns the growth that the condition permits, in bytes or allocations. */
double condition_permitted(const struct condition *c, const struct diff *d);
/** The metric must be known. */
enum condition_answer condition_ask(const struct condition *c, const struct diff *d);

#endif
