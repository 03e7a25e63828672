/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_DOCTOR_SYS_H
#define CLI_DOCTOR_SYS_H

/*
 * The part of `allium doctor` about the tools of `allium sys`: how each one attaches here, why not in a
 * better way, and what would help.
 */

#include "model/table/table.h"

/**
 * Calls `add` for each tool. The tool's programs are loaded and attached for a moment, if that is allowed.
 */
void doctor_sys(struct table *t, bool (*add)(struct table *t, const char *what, bool works, const char *found,
                                             const char *advice));

#endif
