/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef QUERY_GLOB_H
#define QUERY_GLOB_H

/*
 * Patterns with * and ?: those of queries and of lists of functions. Allocates nothing.
 */

#include <stdbool.h>
#include <stddef.h>

/**
 * Whether the pattern (NUL-terminated) matches all `len` bytes of the text: * stands for any bytes, none included, and ?
 * for one character of UTF-8 (in other text: one byte with up to three of 0x80-0xbf after it); a backslash takes the
 * meaning from the character after it. Case counts. The time grows at worst with len * strlen(pattern).
 */
bool query_glob(const char *pattern, const char *text, size_t len);

#endif
