/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_ZSTD_FILE_H
#define SYMBOL_ZSTD_FILE_H

/*
 * Files that are packed with zstd, as distributions pack modules of the kernel. Not every build of elfutils unpacks
 * them itself.
 *
 * Runs in: the tool. Owns: nothing between two calls.
 */

#include <stdint.h>

/**
 * Unpacks the file from its beginning into memory. Returns a descriptor of it, which the caller closes, or -errno:
 * -ENOEXEC it is not packed with zstd, -EBADMSG it is damaged or cut, -EFBIG it has more than `most` bytes.
 */
int zstd_file_unpack(int fd, uint64_t most);

#endif
