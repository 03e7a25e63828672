/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_PATTERN_H
#define BASE_SIGSAFE_PATTERN_H

/*
 * Matches patterns with * and ?, in queries and in lists of functions. Allocates nothing.
 *
 * Runs in: target, cold paths, and the tool. Threads: any.
 */

#include <stdbool.h>
#include <stddef.h>

/**
 * Returns whether the pattern (NUL-terminated) matches all `len` bytes of the text: * stands for any bytes, none
 * included, and ? for one character of UTF-8 (in other text: one byte with up to three of 0x80-0xbf after it); a
 * backslash makes the character after it an ordinary one. Case matters. The time grows at most with len *
 * strlen(pattern).
 */
bool pattern_glob(const char *pattern, const char *text, size_t len);

/* Flags of a pattern. */
/* also matches the text behind any slash; the pattern begins with PATTERN_ANYWHERE_BYTES bytes, "*" and "/" */
#define PATTERN_ANYWHERE 1u
/* also matches the name of a shared object without .so and the rest, and without -VERSION before that */
#define PATTERN_MODULE 2u

#define PATTERN_ANYWHERE_BYTES 2

/** Returns whether the text, or another spelling of it as by the flags, matches. Both are NUL-terminated. */
bool pattern_fits(const char *pattern, unsigned how, const char *text);

#endif
