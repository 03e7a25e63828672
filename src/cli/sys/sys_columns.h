/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_COLUMNS_H
#define CLI_SYS_COLUMNS_H

/*
 * Columns that have no values with the given options. --where, --alert and --sort on such a column would wait
 * in vain; they are refused, with the option that the column needs.
 */

#include "cli/sys/sys_options.h"

/** Returns the column of that name, in the words of --help, of JSON or of the heading; the number of columns: none. */
uint32_t sys_columns_find(const struct sys_tool *tool, const char *text, size_t len);

/** Returns whether rows by this part have a column with stacks. */
bool sys_columns_part_has_stacks(const struct sys_tool *tool, const struct sys_part *part);

/** Refuses an option about stacks if there will be none. Returns -1 to go on, or an exit code after a line on
 * stderr. */
int sys_columns_check_stacks(const struct sys_request *r, const char *option);
/** Checks what depends on the other options. Returns -1: fine; else an exit code, after a line on stderr. */
int sys_columns_check(const struct sys_request *r);
/** Checks what depends on how the tool was attached; call it then. Returns as above. */
int sys_columns_check_attached(const struct sys_request *r, const struct sys_session *s);
/** Checks what depends on a recording, whose columns `t` has: columns that it lacks are hidden. Returns as
 * above. */
int sys_columns_check_recorded(const struct sys_show *show, const struct table *t, uint64_t regrouped,
                               const char *path);

#endif
