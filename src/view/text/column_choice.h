/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_COLUMN_CHOICE_H
#define VIEW_COLUMN_CHOICE_H

/*
 * Which columns of tables are shown: the names that --columns has, and which of them some table had.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the names and headings, until column_choice_release().
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"

struct column_choice {
    struct VEC(struct column_choice_name {
        char *text;
        bool found;
    }) names;
    struct VEC(char *) headings; /* of all tables, once each */
    bool any_table;              /* was written */
};

/** Returns the next name of a list with commas between names, without the blanks around it, and its length; moves
 * `*list` behind it. NULL: there is none. */
const char *column_choice_next(const char **list, size_t *len);
/** Takes the names of such a list. */
void column_choice_add(struct column_choice *c, const char *list);
/** Returns whether one of the names is this heading, in whatever case, and with any of " _-" between words. */
bool column_choice_has(const struct column_choice *c, const char *heading);
/** A table has a column of this heading, shown or not: stores the heading, and marks its names as found. */
void column_choice_note(struct column_choice *c, const char *heading);
/** Returns the first name that no table had; NULL: there is none, or no table was written. */
const char *column_choice_missing(const struct column_choice *c);
void column_choice_release(struct column_choice *c);

#endif
