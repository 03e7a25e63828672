/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_SLAB_IMPORT_H
#define SYS_SLAB_IMPORT_H

/*
 * Copies of alloc_traces of the slab caches as the accounts of a trace: which objects are live at one moment, by cache
 * and stack.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include "collect/kernel/slab_traces.h"
#include "sys/record/import/kernel_import.h"

/**
 * Adds the live objects; free_traces are of no memory, and passed over. `tick_ns`: how long a tick of the kernel was;
 * 0: not known. `written_ns`: when the copies were made, CLOCK_REALTIME.
 */
void slab_import_add(struct kernel_import *i, const struct slab_traces *t, uint64_t tick_ns,
                     uint64_t written_ns);

#endif
