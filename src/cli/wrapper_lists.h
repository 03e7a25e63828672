/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_WRAPPER_LISTS_H
#define CLI_WRAPPER_LISTS_H

/*
 * The lists of wrappers (functions that only pass on the requests of their callers): the list that came with
 * allium, then the user's own.
 */

#include "model/profile/profile.h"
#include "model/profile/wrappers.h"

/**
 * Adds all lists to `w`. A list that cannot be read, or rejected lines, get a line on stderr; the rest
 * counts.
 */
void wrapper_lists_read(struct wrappers *w);
/** The same for functions of the kernel that only allocate for their callers: another list, kernel-helpers. */
void wrapper_lists_read_helpers(struct wrappers *w);
/**
 * Returns the patterns for an agent, besides its built-in list: the user's own list, then `names` (may be
 * NULL), patterns separated by commas. NULL: none. The caller frees it.
 */
char *wrapper_lists_for_agent(const char *names);
/** Adds `names` in that form. */
void wrapper_lists_add(struct wrappers *w, const char *names);
/** Reads the lists and marks the wrappers in the profile (model/profile/wrappers.h); of the kernel, the helpers. */
void wrapper_lists_mark(struct profile *p);

#endif
