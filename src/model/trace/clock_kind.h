/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_CLOCK_KIND_H
#define MODEL_CLOCK_KIND_H

/*
 * What the clock of a trace (`allium trace --clock`) tells: its word, or NULL or "", if all events have times.
 *
 * Runs in: the tool. Pure.
 */

#include <stdbool.h>
#include <string.h>

#define CLOCK_KIND_EVERY "every:"

/** Returns whether only some events were stamped, and the times of the others are interpolated. */
static inline bool clock_kind_interpolates(const char *clock)
{
    return clock && !strncmp(clock, CLOCK_KIND_EVERY, strlen(CLOCK_KIND_EVERY));
}

/** Returns whether times are numbers of events. */
static inline bool clock_kind_has_numbers(const char *clock)
{
    return clock && *clock && !clock_kind_interpolates(clock);
}

/** Returns whether the order of events of different CPUs is not sure. */
static inline bool clock_kind_has_bounds(const char *clock)
{
    return clock && (!strcmp(clock, "none") || clock_kind_interpolates(clock));
}

#endif
