/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_TAR_FILES_H
#define SYMBOL_TAR_FILES_H

/*
 * The files of a tar archive (ustar, with the long names of GNU and pax), of which the first folder is the top of a
 * kernel's source. For tree_files.c only.
 *
 * Runs in: the tool. Threads: any. Owns: nothing.
 */

#include <stdbool.h>

#include "symbol/tree/tree_files.h"

/** Like tree_files_read(), for an archive. -EBADMSG: it is damaged, or none. */
int tar_files_read(const char *path, tree_file_found found, void *arg, struct error *e);
/** Returns whether the file, by its path below the top, matters. */
bool tree_files_wants(const char *path);

#endif
