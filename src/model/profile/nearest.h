/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_NEAREST_H
#define MODEL_NEAREST_H

/*
 * Names like one that is not there.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include "model/profile/profile.h"

#define NEAREST_MAX 3

/** Whether a function of the profile has a name that fits the pattern (base/sigsafe/pattern.h). */
bool nearest_fits_any(const struct profile *p, const char *pattern);
/**
 * Up to NEAREST_MAX strings of the profile, names of functions that are like `text`, the most alike first: those that
 * have it in them, or that a few other letters make of it. Case and the pattern's * and ? do not count. Their number.
 */
size_t nearest_functions(const struct profile *p, const char *text, uint32_t nearest[static NEAREST_MAX]);

#endif
