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
 * Returns whether the pattern (NUL-terminated) matches all `len` bytes of the text. * matches any bytes, or none; ?
 * matches one character of UTF-8 (in other text: one byte and up to three bytes 0x80-0xbf after it); a backslash makes
 * the next character an ordinary one. Case matters. The time is at most proportional to len * strlen(pattern).
 */
bool pattern_glob(const char *pattern, const char *text, size_t len);

/* Flags of a pattern. */
/* also match the text after any slash; the pattern must begin with PATTERN_ANYWHERE_BYTES bytes, "*" and "/" */
#define PATTERN_ANYWHERE 1u
/* also match libNAME-VERSION and libNAME, if the text is libNAME-VERSION.so or libNAME-VERSION.so.N */
#define PATTERN_MODULE 2u

#define PATTERN_ANYWHERE_BYTES 2

/** Returns whether the pattern matches the text, or a part of the text that the flags `how` permit. */
bool pattern_fits(const char *pattern, unsigned how, const char *text);

#endif
