/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_PERF_IMPORT_H
#define SYS_PERF_IMPORT_H

/*
 * The kmem events of a file of `perf record` for `allium sys import`.
 *
 * Runs in: the tool. Threads: one. Owns: nothing beyond the call.
 */

#include "base/error.h"
#include "collect/kernel/trace/perf_data.h"
#include "sys/record/import/kernel_import.h"

/** Called before the first event is accounted: the last moment for kernel_import_use_symbols(). Returns 0, or -errno
 * with a line. */
typedef int perf_import_names_fn(void *arg, const struct perf_data_about *about, struct error *e);

/** Accounts all events. Returns 0, or -errno with a line; events before that are accounted. */
int perf_import_read(struct kernel_import *to, struct perf_data *from, perf_import_names_fn *names, void *arg,
                     struct error *e);

#endif
