/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_DIFF_SIDES_H
#define CLI_DIFF_SIDES_H

/*
 * The two sides of `allium diff`, each one source or several, and --per.
 *
 * Runs in: the tool. Owns: the sources, until diff_sides_release().
 */

#include "cli/source_list.h"
#include "model/profile/diff_per.h"
#include "model/profile/profile_diff.h"

struct diff_sides {
    const char *text[PROFILE_PAIR_SIDES]; /* as given */
    struct source_list of[PROFILE_PAIR_SIDES];
    struct diff_side side[PROFILE_PAIR_SIDES]; /* once they are open */
    double *divisors[PROFILE_PAIR_SIDES];
    enum diff_per per;
};

/** Reads the two arguments and --per. Returns -1, or the exit code after a line. To be released in both cases. */
int diff_sides_parse(struct diff_sides *s, const struct command *c, const struct arguments *a);
/** Opens all sources, and checks that they can be compared. Returns as above. */
int diff_sides_open(struct diff_sides *s, const struct command *c);
/** Returns the label of each source, those before first, as an array that the caller frees. */
const char **diff_sides_labels(const struct diff_sides *s);
void diff_sides_release(struct diff_sides *s);

#endif
