/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ATTACH_REFUSAL_H
#define ATTACH_REFUSAL_H

/*
 * Processes that must not, or cannot, be attached to: found out before anything of them is touched.
 *
 * Runs in: the tool.
 */

#include <sys/types.h>

#include "attach/target_process.h"

/** By what the kernel tells of the process. Returns 0, or -errno with a line. */
int refusal_of_process(pid_t pid, struct error *e);
/** By what it has mapped. */
int refusal_of_maps(const struct target *t, struct error *e);

#endif
