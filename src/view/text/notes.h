/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_NOTES_H
#define VIEW_NOTES_H

/*
 * Notes: the lines of a report for standard error, such as how many rows were left out and what was lost. A
 * view collects them in a buffer, one note a line; the command prints them (command_notes()) after the report
 * itself.
 *
 * Runs in: the tool. Owns: nothing; the buffer belongs to the caller.
 */

#include <stdint.h>

#include "base/buf.h"

/** Appends a note. */
void notes_add(struct buf *notes, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Appends a note about `n` things, with words in the form of text_add_words(); no note if n is 0. */
void notes_add_count(struct buf *notes, uint64_t n, const char *words);
/** Appends "20 of 45 rows are shown; --top 0 shows all", unless all are. */
void notes_add_cut(struct buf *notes, uint64_t shown, uint64_t all);

#endif
