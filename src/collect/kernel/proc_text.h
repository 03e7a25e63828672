/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROC_TEXT_H
#define COLLECT_PROC_TEXT_H

/*
 * Parses text files of the kernel, which were read whole (base/read_file.h), line by line. Nothing is
 * trusted: long lines are cut, large numbers become UINT64_MAX, and a number never begins on the next line.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROC_TEXT_BYTES 4352 /* of a line: a path of PATH_MAX and the words before it */

/** Copies the next line, without its newline, and moves behind it. Returns false at the end. */
bool proc_text_next(const char **text, char line[static PROC_TEXT_BYTES]);
/** Reads a decimal number after blanks, and moves behind it. Returns false if there is none. */
bool proc_text_number(const char **at, uint64_t *value);
/** Reads the number of a line "KEY: 12 kB" or "KEY 12" with that key; kB become bytes. Returns false if the
 * line has another key. */
bool proc_text_value(const char *line, const char *key, uint64_t *value);
/** Returns a * b, at most UINT64_MAX. */
uint64_t proc_text_times(uint64_t a, uint64_t b);
/** Copies a word (up to a blank) after blanks, cut to fit, and moves behind it. Returns false if there is
 * none. */
bool proc_text_word(const char **at, char *out, size_t size);
/**
 * Decodes a word of mountinfo or swaps, in which the kernel writes blanks, newlines and backslashes as \040
 * and so on. The caller frees the result.
 */
char *proc_text_unescape(const char *word, size_t len);

#endif
