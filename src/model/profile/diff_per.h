/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_DIFF_PER_H
#define MODEL_DIFF_PER_H

/*
 * The amounts by which the figures of a capture can be divided before captures are compared: 1 for a boot, the
 * allocations of the capture, or its length in seconds.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include "model/profile/profile.h"

enum diff_per { DIFF_PER_NOTHING, DIFF_PER_BOOT, DIFF_PER_EVENT, DIFF_PER_SECOND };

/**
 * Returns the divisor of a capture: all its allocations, whatever is selected of them, or the seconds from its
 * beginning to its last reading; 1 otherwise. 0: it has no allocation, or its length is not known.
 */
double diff_per_divisor(const struct profile *p, enum diff_per per);
/** Returns whether the number of allocations is known exactly: all were recorded. */
bool diff_per_exact(const struct profile *p);
/** Returns whether all of it is of the kernel. */
bool diff_per_of_kernel(const struct profile *p);

#endif
