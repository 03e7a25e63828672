/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_DIR_H
#define COLLECT_TRACE_DIR_H

/*
 * Folders of traces, which only their owner may read.
 *
 * Runs in: the tool. Threads: any. Owns: nothing.
 */

#include <stdbool.h>

#include "base/error.h"

/** Returns whether allium has made this folder, for a trace. */
bool trace_dir_is_ours(const char *path);
/** Returns the path of the newest snapshot in a folder of `trace --flight`, for free(). NULL: it has none. */
char *trace_dir_snapshot(const char *path);
/** Sets the line that says why a folder is no trace. Returns -EINVAL. */
int trace_dir_refuse(const char *path, struct error *e);
/** Makes the folder. `force`: one that allium has made before is replaced. Returns 0, or -errno with a line. */
int trace_dir_make(const char *path, bool force, struct error *e);
/** Removes a folder with all that it has; no link is followed. Returns 0 or -errno. */
int trace_dir_remove(const char *path);
/** Returns how many bytes the files of a folder and of the folders in it have. */
unsigned long long trace_dir_bytes(const char *path);

#endif
