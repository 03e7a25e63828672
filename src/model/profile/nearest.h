/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_NEAREST_H
#define MODEL_NEAREST_H

/*
 * Finds names that are similar to a name that does not exist.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include "model/profile/profile.h"

#define NEAREST_MAX 3

/** Returns a smaller number for a name that is more similar to the wanted one; SIZE_MAX: it is not similar. */
size_t nearest_unlikeness(const char *wanted, const char *name);
/** Returns whether the name of a function in the profile matches the pattern (base/sigsafe/pattern.h). */
bool nearest_fits_any(const struct profile *p, const char *pattern);
/**
 * Finds up to NEAREST_MAX function names similar to `text`, the most similar first: names that contain it, or
 * that differ from it by a few letters. Case and the pattern's * and ? are ignored. Returns their number;
 * `nearest` gets strings of the profile.
 */
size_t nearest_functions(const struct profile *p, const char *text, uint32_t nearest[static NEAREST_MAX]);

#endif
