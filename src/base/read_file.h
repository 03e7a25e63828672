/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_READ_FILE_H
#define BASE_READ_FILE_H

/*
 * Files of the kernel (/proc, /sys) read whole: they have no size before they are read.
 *
 * Runs in: the tool. Threads: any.
 */

#include <stddef.h>

#include "base/buf.h"

/**
 * Appends what is in the file, at most `max` bytes. 0; or what open(2) or read(2) gave; or -EFBIG: there is more, `out`
 * has the beginning. A text of no bytes is "", not NULL.
 */
int file_read(const char *path, size_t max, struct buf *out);
/** The same of a file below `folder`, an open one, or AT_FDCWD. */
int file_read_at(int folder, const char *path, size_t max, struct buf *out);
/** The same of a file that is open, from where it stands. */
int file_read_open(int fd, size_t max, struct buf *out);

#endif
