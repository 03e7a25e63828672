/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_REFUSALS_H
#define CLI_SYS_REFUSALS_H

/*
 * Refuses options of `allium sys NAME` that would have no effect, beside other options or without them; in
 * one line each.
 */

#include "cli/sys/sys_options.h"

/** Called after all options were read into `r`. Returns -1: each has an effect; else an exit code, after a
 * line on stderr. */
int sys_refusals_check(const struct sys_request *r, const struct arguments *a);

#endif
