/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_RAW_FOLDER_H
#define SYS_RAW_FOLDER_H

/*
 * The folder of `allium sys record --raw`: the pages of the kernel's trace buffers as they were read, and all that is
 * needed to read them elsewhere, under the names that tracefs has for it:
 *
 *     events/header_page, events/kmem/kmalloc/format ...   the formats
 *     per_cpu/cpu0/trace_pipe_raw ...                      the pages of a CPU, one behind the other
 *     per_cpu/cpu0/stats ...                               what the kernel counted
 *     trace_clock                                          its name: mono
 *     saved_cmdlines                                       names of threads at the beginning
 *     groups                                               their processes and control groups; see tasks.h
 *     state/TIME/proc/slabinfo ...                         what the kernel told of its memory; see raw_states.h
 *     kallsyms                                             a copy of /proc/kallsyms, of the end
 *     allium                                               version, machine, CPUs, and what the recorder was
 *
 * Runs in: the tool, as root. Threads: one. Owns: the open files, until raw_folder_close(). Files are for their owner
 * only, as they contain addresses of the kernel.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/kernel/trace/trace_reader.h"
#include "sys/record/tasks.h"

struct raw_folder;

/* Each of these returns 0, or -errno with a line. */

/** Makes the folder, which must not exist. `path` must outlive it. */
int raw_folder_create(struct raw_folder **out, const char *path, struct error *e);
void raw_folder_close(struct raw_folder *f); /* NULL is allowed */

/** Writes a file in it; folders in the name are made. */
int raw_folder_put(struct raw_folder *f, const char *name, const void *bytes, size_t n, struct error *e);
int raw_folder_put_tasks(struct raw_folder *f, const struct tasks *t, struct error *e);
/** Writes what is known before the first event, and has the reader give its pages. */
int raw_folder_begin(struct raw_folder *f, const struct trace_instance *t, struct trace_reader *r,
                     struct error *e);
/** Writes what is known after the last one. `realtime_ns`: CLOCK_REALTIME minus the trace's clock. */
int raw_folder_end(struct raw_folder *f, const struct trace_instance *t, int64_t realtime_ns, int32_t own_tid,
                   struct error *e);

#endif
