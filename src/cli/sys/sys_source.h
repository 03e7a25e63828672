/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_SOURCE_H
#define CLI_SYS_SOURCE_H

/*
 * The kernel's source for the files of functions without debug information: given by --source, or where distributions
 * and builds put it. Its index is made once, and kept beside the cache of names.
 *
 * Runs in: the tool. Threads: one. Owns: nothing; the finder belongs to the caller, who may pass NULL to free it.
 */

#include <stdbool.h>

#include "base/error.h"
#include "symbol/tree/source_finder.h"

/**
 * Opens what --source names, whatever its version is. `file` NULL: *out is NULL. Returns 0, or -errno with a line.
 */
int sys_source_open(struct source_finder **out, const char *file, struct error *e);
/** Opens the source of this very release, if it is found below /lib/modules or /usr/src. Returns NULL, if not. */
struct source_finder *sys_source_seek(const char *release);
/**
 * Tells the finder which kernel it is for. `release`: "" if it is not known. `config`: the text of its configuration;
 * NULL: that in /boot, if the release has one there. `file`: of --source, or NULL; then a line says if it is the source
 * of another version, unless `quiet`.
 */
void sys_source_set_kernel(struct source_finder *f, const char *release, const char *config, const char *file,
                           bool quiet);
/**
 * For the running kernel: what --source names, or what is found unless there is debug information. Returns -1 to go
 * on, or an exit code after a line. *out may be NULL.
 */
int sys_source_of_running(struct source_finder **out, const char *file, bool has_debug, bool quiet);

#endif
