/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_READ_FILE_H
#define BASE_READ_FILE_H

/*
 * Reads whole files of /proc and /sys, for which fstat(2) reports no size.
 *
 * Runs in: the tool. Threads: any.
 */

#include <stddef.h>

#include "base/buf.h"

/**
 * Appends the contents of the file, at most `max` bytes. Returns 0, the error of open(2) or read(2), or
 * -EFBIG if the file is longer; then `out` has the first `max` bytes. For an empty file the text is "", not NULL.
 */
int file_read(const char *path, size_t max, struct buf *out);
/**
 * Like file_read(), for a file below the open directory `folder`. If the file is a FIFO, it does not wait: without a
 * writer, the FIFO is empty.
 */
int file_read_at(int folder, const char *path, size_t max, struct buf *out);
/** Like file_read(), for an open file, from its current offset on. */
int file_read_open(int fd, size_t max, struct buf *out);

#endif
