/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_PATTERN_H
#define BASE_SIGSAFE_PATTERN_H

/*
 * Patterns with * and ?: those of queries and of lists of functions. Allocates nothing.
 *
 * Runs in: target, cold paths, and the tool. Threads: any.
 */

#include <stdbool.h>
#include <stddef.h>

/**
 * Whether the pattern (NUL-terminated) matches all `len` bytes of the text: * stands for any bytes, none included, and ?
 * for one character of UTF-8 (in other text: one byte with up to three of 0x80-0xbf after it); a backslash takes the
 * meaning from the character after it. Case counts. The time grows at worst with len * strlen(pattern).
 */
bool pattern_glob(const char *pattern, const char *text, size_t len);

/* How a pattern is meant. */
#define PATTERN_ANYWHERE                                                                                     \
    1u /* what follows any slash may fit, too: the pattern begins with PATTERN_ANYWHERE_BYTES of its own, "*" and "/" */
#define PATTERN_MODULE                                                                                       \
    2u /* also the name of a shared object without .so and what follows, also without -VERSION before that */

#define PATTERN_ANYWHERE_BYTES 2

/** Whether the text, or what else it may be called, fits. Both are NUL-terminated. */
bool pattern_fits(const char *pattern, unsigned how, const char *text);

#endif
