/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_WRAPPERS_H
#define MODEL_WRAPPERS_H

/*
 * Wrappers: functions that only pass on the requests of their callers, such as xmalloc() and operator new. A
 * list of patterns marks them in the names of a profile. frames.h defines which frames are skipped then.
 *
 * A list is a text with one pattern a line (share/allium/wrappers describes the syntax). Several texts form
 * one list; the last line that matches a name decides.
 *
 * Runs in: the tool. Threads: pure functions of their arguments.
 * Owns: the patterns, until wrappers_release().
 */

#include <stdbool.h>
#include <stddef.h>

#include "model/profile/profile.h"

#define WRAPPERS_LINE_BYTES 1024  /* longer lines are rejected */
#define WRAPPERS_MAX        16384 /* patterns; further ones are rejected */

struct wrapper {
    char *pattern;
    bool no; /* the pattern excludes functions ('!') */
};

struct wrappers {
    struct VEC(struct wrapper) all;
};

/** The rejected lines of a text, and the reason for the first of them. */
struct wrappers_bad {
    size_t lines;
    size_t first;    /* its number, from 1 */
    const char *why; /* static */
};

/** Adds the lines of a text of `len` bytes with any contents. Rejected lines are counted in *bad. */
void wrappers_add(struct wrappers *w, const char *text, size_t len, struct wrappers_bad *bad);
void wrappers_release(struct wrappers *w);
/** Returns whether a function of this name is a wrapper. */
bool wrappers_have(const struct wrappers *w, const char *function);
/** Sets `wrapper` and `nameless` in all lines of the profile. Everything that counts by function uses these
 * marks. */
void wrappers_mark(const struct wrappers *w, struct profile *p);

#endif
