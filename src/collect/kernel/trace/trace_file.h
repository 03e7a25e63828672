/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_FILE_H
#define COLLECT_TRACE_FILE_H

/*
 * The lines of a text file, plain or compressed with gzip, or of standard input.
 *
 * Runs in: the tool. Threads: one. Owns: the open file, until trace_file_close().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct trace_file;

/** A longer line is read as several. */
#define TRACE_FILE_LINE_MAX (64u << 10)

/** Opens the file; "-": standard input. Returns 0, or -errno with a line. */
int trace_file_open(struct trace_file **out, const char *path, struct error *e);
/**
 * Returns when the file was last written (CLOCK_REALTIME), or the present time for a pipe and for a file that the
 * kernel makes while it is read, as those of tracefs. Call it at the end.
 */
uint64_t trace_file_written_ns(const struct trace_file *f);
/** Returns whether `path` is this file. */
bool trace_file_is(const struct trace_file *f, const char *path);
/** NULL is allowed. */
void trace_file_close(struct trace_file *f);
/** Returns 1 and a line without its newline, which stays until the next call; 0: the end; or -errno with a line in
 * `e`: -EILSEQ the compressed data are damaged or cut. */
int trace_file_line(struct trace_file *f, const char **line, size_t *len, struct error *e);

#endif
