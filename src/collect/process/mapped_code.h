/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_MAPPED_CODE_H
#define COLLECT_MAPPED_CODE_H

/*
 * The program and the libraries of a process, by paths with which allium can open them, even if the process has another
 * root or other mounts, or the files were replaced on the disk.
 *
 * Runs in: the tool, as root. Threads: any.
 */

#include <sys/types.h>

#include "collect/process/loader_files.h"

/**
 * Adds the files with code that the process has mapped now, its program among them, each once; `name` is their path in
 * the process. Returns 0, or -errno as proc_maps_read().
 */
int mapped_code_read(pid_t pid, struct loader_files *out);
/** Returns a path with which allium can open the program of the process, for free(). NULL: it has none. */
char *mapped_code_program(pid_t pid);

#endif
