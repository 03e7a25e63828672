/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_PROBE_FIND_H
#define SYS_PROBE_FIND_H

/*
 * From the words of --function to places in files.
 *
 * Runs in: the tool; may run the program's loader (collect/process/loader_files.h). Threads: any.
 */

#include "base/buf.h"
#include "sys/probe/probe_list.h"

/** Sets name, is_static and sites of `p`. Returns 0, or -errno with a line; in both cases the caller frees them. */
int probe_find(struct probe *p, const char *text, const struct probe_target *target, struct error *e);

/** Appends "; similar names: getenv, setenv", of functions of the file, or nothing. */
void probe_find_similar(const char *path, const char *name, struct buf *b);

#endif
