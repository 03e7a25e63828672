/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROC_TEXT_H
#define COLLECT_PROC_TEXT_H

/*
 * Text files of the kernel, read whole (base/read_file.h), taken apart line by line. Nothing here trusts what it reads:
 * lines that are too long are cut, numbers that are too large are UINT64_MAX, and no number begins on the line after.
 *
 * Runs in: the tool. Threads: pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROC_TEXT_BYTES 4352 /* of a line: a path of PATH_MAX and what stands before it */

/** Copies the next line, without its end, and moves on. False: there is none. */
bool proc_text_next(const char **text, char line[static PROC_TEXT_BYTES]);
/** Reads a decimal number after blanks, and moves behind it. False: there is none. */
bool proc_text_number(const char **at, uint64_t *value);
/** Is this line "KEY: 12 kB" or "KEY 12" of that key? Its number; kB are turned into bytes. */
bool proc_text_value(const char *line, const char *key, uint64_t *value);
/** a * b, at most UINT64_MAX. */
uint64_t proc_text_times(uint64_t a, uint64_t b);
/** Copies a word (up to a blank) after blanks, cut to fit, and moves behind it. False: there is none. */
bool proc_text_word(const char **at, char *out, size_t size);
/**
 * A word of mountinfo or swaps as it is: the kernel writes blanks, ends of lines and backslashes as \040. The caller
 * frees it.
 */
char *proc_text_unescape(const char *word, size_t len);

#endif
