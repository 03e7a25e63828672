/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CLOCK_SOURCE_H
#define COLLECT_CLOCK_SOURCE_H

/*
 * The clock source that the kernel uses. If it is not the time stamp counter, the kernel has found that the counters of
 * the CPUs do not agree, or stand still at times: then events must not be stamped with it.
 *
 * Runs in: the tool. Threads: any.
 */

#include <stdbool.h>

#define CLOCK_SOURCE_BYTES 32

/** Returns whether it is the time stamp counter, or not known. `name`: receives its name; "": not known. */
bool clock_source_is_tsc(char name[static CLOCK_SOURCE_BYTES]);

#endif
