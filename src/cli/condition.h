/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_CONDITION_H
#define CLI_CONDITION_H

/*
 * --fail-if: METRIC+AMOUNT, as in live+10%, peak+1GiB or allocations+20%. Samples decide it with an uncertainty
 * (condition_ask()), exact accounts without (model/accounts/accounts_growth.h).
 *
 * Runs in: the tool. Threads: pure. Owns: nothing; the text belongs to the caller.
 */

#include <stdbool.h>

#include "base/error.h"
#include "cli/option_values.h"
#include "model/profile/profile_diff.h"

#define CONDITIONS_MAX ARGUMENTS_MANY

struct condition {
    const char *text;
    int metric;    /* of samples: an enum rollup_sort, the metric, and whether its bytes or objects count */
    double share;  /* share of the value before: 0.1; or */
    double amount; /* bytes or objects, if the share is 0 */
};

/** What can be compared. */
struct condition_metrics {
    const struct word *words;
    bool (*counts)(int metric); /* objects or calls, and not bytes */
};
/** Those of samples. */
extern const struct condition_metrics condition_of_samples;

enum condition_answer {
    CONDITION_NOT_MET,
    CONDITION_OPEN, /* the estimate exceeds it, but that may be chance */
    CONDITION_UNDECIDED, /* it may be exceeded, and so small a growth cannot be told from chance with these samples */
    CONDITION_MET, /* it is exceeded with a certainty of 97.5 % */
};

/** Returns 0, or -EINVAL with a line that says what is wrong and in which column, counted from 1. */
int condition_parse(struct condition *c, const char *text, const struct condition_metrics *metrics,
                    struct error *e);
/** All that were given. Returns -1 to go on, or the exit code after a line. */
int condition_parse_all(struct condition conditions[static CONDITIONS_MAX], int *n,
                        const struct command *command, const struct arguments *a,
                        const struct condition_metrics *metrics);
/** Returns the value of the condition's metric in both sources. */
const struct diff_value *condition_value(const struct condition *c, const struct diff *d);
/** Returns the growth that the condition permits, in bytes or allocations. */
double condition_permitted(const struct condition *c, const struct diff *d);
/** The metric must be known. */
enum condition_answer condition_ask(const struct condition *c, const struct diff *d);

#endif
