/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_OUTPUT_FILE_H
#define CLI_OUTPUT_FILE_H

/* A file that a command writes: an existing one is overwritten only if the user says so. */

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/**
 * Opens `path` for writing, for its owner alone (mode 0600). A pipe or a device is opened as it is; a regular file that
 * exists is opened with `force`, not yet emptied, and refused otherwise. Returns NULL with a line; check the result of
 * fclose().
 */
FILE *output_file_open(const char *path, bool force, struct error *e);

#endif
