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
struct kernel_capture;

/** Makes the folder, which must not exist. `path` must outlive it. Returns 0, or -errno with a line. */
int raw_folder_create(struct raw_folder **out, const char *path, struct error *e);
void raw_folder_close(struct raw_folder *f); /* NULL is allowed */
/** Removes the folder with everything in it; it is to be closed after that. NULL is allowed. */
void raw_folder_remove(struct raw_folder *f);

/*
 * The recording does not fail with the folder: after a first failure, a full disk for example, these do nothing.
 */

/** Returns the line of the failure; NULL: there was none. NULL is allowed. */
const char *raw_folder_failed(const struct raw_folder *f);
/** Writes a file in it; folders in the name are made. */
void raw_folder_put(struct raw_folder *f, const char *name, const void *bytes, size_t n);
/** Copies "events/GROUP/EVENT/format". */
void raw_folder_put_format(struct raw_folder *f, const struct trace_instance *t, const char *path);
/** Writes what is known before the first event, and has the reader give its pages. */
void raw_folder_begin(struct raw_folder *f, const struct trace_instance *t, struct trace_reader *r);
void raw_folder_put_tasks(struct raw_folder *f, const struct tasks *t);
/** Writes what is known after the last one, of these accounts, too. */
void raw_folder_end(struct raw_folder *f, const struct trace_instance *t, const struct kernel_capture *c,
                    int32_t own_tid);

#endif
