/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROCESSES_H
#define COLLECT_PROCESSES_H

/*
 * The memory of all processes, from files that wait for no process: /proc/PID/stat and status take no lock of
 * the memory map, so they can be read even while a process hangs with the lock held. Facts that need the lock
 * are in collect/process/process_query.h.
 */

#include <sys/types.h>

#include "model/overview/overview.h"

/** Parses /proc/PID/stat. Returns false if the text is invalid. */
bool process_parse_stat(struct overview_process *p, const char *text);
/** Parses /proc/PID/status. Kernel threads have no memory there. */
void process_parse_status(struct overview_process *p, const char *text);
/** Reads one process. Returns false if there is none, or we have no permission. */
bool process_read(pid_t pid, struct overview_process *p);
/** Reads all processes but the kernel threads. Returns 0 or -errno. Processes that end meanwhile are left
 * out. */
int processes_read(struct overview *m);

#endif
