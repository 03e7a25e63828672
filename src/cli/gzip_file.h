/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_GZIP_FILE_H
#define CLI_GZIP_FILE_H

/* A stream that compresses into a file with gzip. */

#include <stdio.h>

/** Opens for writing; check the result of fclose(). Returns NULL with errno set. */
FILE *gzip_file_open(const char *path);

#endif
