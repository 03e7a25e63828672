/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_PAGE_IMPORT_H
#define SYS_PAGE_IMPORT_H

/*
 * The kmem events in kept pages of the kernel's trace buffers for `allium sys import`: what `allium sys record` reads
 * live, through the same parsers.
 *
 * Runs in: the tool. Threads: one. Owns: nothing beyond the call.
 */

#include "base/error.h"
#include "collect/kernel/trace/trace_saved.h"
#include "sys/record/import/kernel_import.h"

/** Accounts all events. Returns 0, or -errno with a line, which begins with `path`; what can be read is accounted all
 * the same. */
int page_import_read(struct kernel_import *to, const struct trace_saved *from, const char *path,
                     struct error *e);

#endif
