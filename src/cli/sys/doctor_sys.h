/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_DOCTOR_SYS_H
#define CLI_DOCTOR_SYS_H

/*
 * What `allium doctor` says of the tools of `allium sys`: how each attaches here, why not in a better way, what would
 * help.
 *
 * Runs in: the tool.
 */

#include "model/table/table.h"

/** Calls `add` for each tool; programs are loaded and attached for a moment, where that is allowed. */
void doctor_sys(struct table *t, bool (*add)(struct table *t, const char *what, bool works, const char *found,
                                             const char *advice));

#endif
