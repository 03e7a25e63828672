/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_TREE_FILES_H
#define SYMBOL_TREE_FILES_H

/*
 * The files of a kernel's source that matter to its index: those in C and the Makefiles, of a folder, or of a tar
 * archive, which may be compressed with xz or gzip. Programs that only help to build the kernel are left out.
 *
 * Runs in: the tool. Threads: any. Owns: nothing.
 * Invariant: nothing is written, links are not followed, and no file is larger in memory than TREE_FILE_MAX.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define TREE_FILE_MAX (4u << 20) /* larger ones are lists of registers */

/** Called for each file. `path` is relative to the top of the tree. The text is terminated; both are valid then. */
typedef void (*tree_file_found)(void *arg, const char *path, const char *text, size_t len);

/** Reads all files. Returns 0, or -errno with a line: -ENOENT there is none. */
int tree_files_read(const char *source, tree_file_found found, void *arg, struct error *e);
/**
 * Returns in `out` a number for what is there: of a folder, the names, sizes and times of its files; of an archive, its
 * own. Returns 0, or -errno with a line.
 */
int tree_files_identity(const char *source, uint64_t *out, struct error *e);

#endif
