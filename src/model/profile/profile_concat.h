/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_PROFILE_CONCAT_H
#define MODEL_PROFILE_CONCAT_H

/*
 * Several profiles as one: the images, code and cells of each, one after the other. Nothing is matched, so an image of
 * each stays an image of its own.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include "model/profile/profile.h"

/**
 * Returns a new profile with the images, threads, code, cells and losses of all, in their order; it has no single
 * samples and frees, no points and no moments. The profiles must be valid, and no two of them may have an image of one
 * id. Never NULL.
 */
struct profile *profile_concat(const struct profile *const *of, uint32_t n);

#endif
