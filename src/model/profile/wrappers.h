/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_WRAPPERS_H
#define MODEL_WRAPPERS_H

/*
 * Functions that only pass on what others ask for, such as xmalloc() and operator new: a list of patterns, and the
 * marks it leaves on a profile's names. frames.h says what is passed over then.
 *
 * The list is a text, a pattern a line (share/allium/wrappers says how it is written); several texts make one list, of
 * which the last line that fits a name decides.
 *
 * Runs in: the tool. Threads: pure functions of what they are given. Owns: the patterns, until wrappers_release().
 */

#include <stdbool.h>
#include <stddef.h>

#include "model/profile/profile.h"

#define WRAPPERS_LINE_BYTES 1024  /* longer lines are bad ones */
#define WRAPPERS_MAX        16384 /* patterns; what is beyond is bad */

struct wrapper {
    char *pattern;
    bool no; /* takes away */
};

struct wrappers {
    struct VEC(struct wrapper) all;
};

/** Lines of a text that are none, and what is wrong with the first of them. */
struct wrappers_bad {
    size_t lines;
    size_t first;    /* its number, from 1 on */
    const char *why; /* static */
};

/** Adds the lines of a text of `len` bytes, whatever is in them. Bad ones are left out, and counted in *bad. */
void wrappers_add(struct wrappers *w, const char *text, size_t len, struct wrappers_bad *bad);
void wrappers_release(struct wrappers *w);
/** Whether a function of this name is one. */
bool wrappers_have(const struct wrappers *w, const char *function);
/** Sets `wrapper` and `nameless` of all lines of the profile, which all that counts by function then heeds. */
void wrappers_mark(const struct wrappers *w, struct profile *p);

#endif
