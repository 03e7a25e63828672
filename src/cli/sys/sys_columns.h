/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_COLUMNS_H
#define CLI_SYS_COLUMNS_H

/*
 * Columns that have no value as `allium sys NAME` was asked: --where, --alert and --sort by one of them would be waited
 * for in vain, so that they are refused, with what it takes.
 *
 * Runs in: the tool.
 */

#include "cli/sys/sys_options.h"

/** Refuses an option about stacks where there will be none: -1 to go on, or an exit code, after a line on stderr. */
int sys_columns_check_stacks(const struct sys_request *r, const char *option);
/** What depends on the other options. -1: fine; else an exit code, after a line on stderr. */
int sys_columns_check(const struct sys_request *r);
/** What depends on how it was attached; to be asked when it is. As above. */
int sys_columns_check_attached(const struct sys_request *r, const struct sys_session *s);
/** What depends on a recording, whose columns `t` has: those that it has not are hidden. As above. */
int sys_columns_check_recorded(const struct sys_show *show, const struct table *t, const char *path);

#endif
