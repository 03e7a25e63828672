/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_ALLOC_ATTACH_H
#define SYS_ALLOC_ATTACH_H

/*
 * Puts the probes of `allium sys memleak` on the functions of an allocator, for one process.
 *
 * Runs in: the tool, as root. Threads: one.
 */

#include "sys/uprobe/alloc_processes.h"

/**
 * Puts probes on the functions that were found in the file at `path`. `at_once`: a link for many places. Returns 0 or
 * -errno.
 */
int alloc_attach(struct sys_session *s, bool at_once, struct alloc_process *p, const char *path,
                 const struct alloc_file *file);

#endif
