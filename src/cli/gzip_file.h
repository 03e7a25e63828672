/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_GZIP_FILE_H
#define CLI_GZIP_FILE_H

/*
 * A stream into a file that is compressed with gzip on the way.
 *
 * Runs in: the tool.
 */

#include <stdio.h>

/** For writing; fclose() it, and look at what that says. NULL with errno set. */
FILE *gzip_file_open(const char *path);

#endif
