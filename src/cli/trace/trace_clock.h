/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_CLOCK_H
#define CLI_TRACE_CLOCK_H

/* The clock of a trace's events, if the time stamp counter cannot be used. */

#include <stdbool.h>
#include <stdint.h>

#include "cli/command.h"

/** Returns whether the kernel does not use the time stamp counter as its clock: then events must not, either. */
bool trace_clock_must_be_mono(void);
/** Checks the word of --clock; NULL: it is not given. Returns -1, or the exit code after a line. */
int trace_clock_check(const struct command *c, const char *clock);
/** Says why events of `images` process images have CLOCK_MONOTONIC although the user did not ask for it. */
void trace_clock_tell(uint64_t images);

#endif
