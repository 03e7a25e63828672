/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_OPTION_VALUES_H
#define CLI_OPTION_VALUES_H

/* Values of options that several commands have: words for groups and orders, numbers of rows. */

#include <stdint.h>

#include "cli/command.h"
#include "model/profile/rollup.h"

struct word {
    const char *text; /* NULL: the end of a table */
    int value;
};

/** The default number of rows in a report. */
#define OPTION_VALUES_TOP_DEFAULT    20
#define OPTION_VALUES_TREE_DEFAULT   30
#define OPTION_VALUES_FRAMES_DEFAULT 12

extern const struct word option_values_groups[];      /* of --by, enum rollup_group */
extern const struct word option_values_orders[];      /* of --sort, enum rollup_sort */
extern const struct word option_values_diff_orders[]; /* ... of `allium diff` */

/** Finds the word's value, if `text` is not NULL. Returns -1: fine; else the exit code, after a line on
 * stderr. */
int option_values_parse(const struct command *c, const char *option, const char *text,
                        const struct word *words, int *value);
/**
 * Parse values with a unit, and counts; nothing changes if `text` is NULL. The range includes both ends.
 * Return -1, or the exit code after a line that shows what a value looks like.
 */
int option_values_parse_time(const struct command *c, const char *option, const char *text, uint64_t least_ns,
                             uint64_t *ns);
int option_values_parse_size(const struct command *c, const char *option, const char *text, uint64_t least,
                             uint64_t most, uint64_t *bytes);
int option_values_parse_count(const struct command *c, const char *option, const char *text, uint32_t least,
                              uint32_t most, uint32_t *n);
/** Parses --top: a number of rows, 0 for all. Returns as above. */
int option_values_parse_top(const struct command *c, const char *text, uint32_t *top);
/** Returns a list of the words, "live, peak or age": those that `fits` accepts, or (NULL) all. The caller
 * frees it. */
char *option_values_list(const struct word *words, bool (*fits)(const struct word *word, const void *arg),
                         const void *arg);
/** Returns the word for a value in the table. */
const char *option_values_name(const struct word *words, int value);

#endif
