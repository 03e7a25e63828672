/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_WRAPPER_LISTS_H
#define CLI_WRAPPER_LISTS_H

/*
 * The lists of functions that only pass on what others ask for: the one that came with allium, then the user's own.
 *
 * Runs in: the tool.
 */

#include "model/profile/profile.h"
#include "model/profile/wrappers.h"

/**
 * Adds them all to `w`. A list that cannot be read, or lines of it that are none, get a line on stderr; the rest
 * counts.
 */
void wrapper_lists_read(struct wrappers *w);
/**
 * What an agent is started with so that it charges wrappers' callers, beside the list that is built into it: the user's
 * own list, then `names` (may be NULL), patterns with commas in between. NULL: none. The caller frees it.
 */
char *wrapper_lists_for_agent(const char *names);
/** Adds `names`, as above. */
void wrapper_lists_add(struct wrappers *w, const char *names);
/** Reads them and marks them in the profile (model/profile/wrappers.h). */
void wrapper_lists_mark(struct profile *p);

#endif
