/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_WATCH_OLD_H
#define RUN_WATCH_OLD_H

/*
 * Which live samples `allium watch` lists as old. WATCH_OLDER_DEFAULT in run/watch.h has the rule.
 *
 * Runs in: the tool. Threads: pure functions. Owns: nothing.
 */

#include "run/watch.h"

/** Returns the age in ns from which on samples of that image are old, at the time when the image was read. */
uint64_t watch_old_age_ns(const struct watch_options *o, const struct profile_image *i);
/** Returns whether the sample is old, and among those that the options select. */
bool watch_is_old(const struct watch_options *o, const struct profile *p, uint32_t sample);

#endif
