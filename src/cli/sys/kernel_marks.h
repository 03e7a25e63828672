/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_KERNEL_MARKS_H
#define CLI_KERNEL_MARKS_H

/*
 * Events for the timeline of a recording of the kernel, from the states of its memory (state_rows.h).
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "model/profile/profile.h"

/** Adds a mark for each state by which the OOM killer had killed again. A recording without states has none. */
void kernel_marks_add(struct profile *p, const char *path);

#endif
