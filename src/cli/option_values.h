/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_OPTION_VALUES_H
#define CLI_OPTION_VALUES_H

/*
 * Values of options that several commands take: words for groups and orders, numbers of rows.
 *
 * Runs in: the tool.
 */

#include <stdint.h>

#include "cli/command.h"
#include "model/profile/rollup.h"

struct word {
    const char *text; /* NULL: the end of a table */
    int value;
};

/** As many as a report has unless told. */
#define OPTION_VALUES_TOP_DEFAULT    12
#define OPTION_VALUES_TREE_DEFAULT   30
#define OPTION_VALUES_FRAMES_DEFAULT 12

extern const struct word option_values_groups[]; /* of --by, enum rollup_group */
extern const struct word option_values_orders[]; /* of --sort, enum rollup_sort */

/** The word's value, if `text` is not NULL. -1: fine; else the exit code, after a line on stderr. */
int option_values_parse(const struct command *c, const char *option, const char *text,
                        const struct word *words, int *value);
/**
 * Values with a unit, and counts: nothing changes if `text` is NULL. Both ends of the range are in it. As above: -1, or
 * the exit code after a line that says what a value looks like.
 */
int option_values_parse_time(const struct command *c, const char *option, const char *text, uint64_t least_ns,
                             uint64_t *ns);
int option_values_parse_size(const struct command *c, const char *option, const char *text, uint64_t least,
                             uint64_t most, uint64_t *bytes);
int option_values_parse_count(const struct command *c, const char *option, const char *text, uint32_t least,
                              uint32_t most, uint32_t *n);
/** --top: a number of rows, 0 for all. As above. */
int option_values_parse_top(const struct command *c, const char *text, uint32_t *top);
/** "live, peak or age": those that `fits` takes, or (NULL) all. The caller frees it. */
char *option_values_list(const struct word *words, bool (*fits)(const struct word *word, const void *arg),
                         const void *arg);
/** The word for a value that the table has. */
const char *option_values_name(const struct word *words, int value);

#endif
