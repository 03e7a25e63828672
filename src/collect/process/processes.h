/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROCESSES_H
#define COLLECT_PROCESSES_H

/*
 * The memory of all processes, from files that wait for no process: /proc/PID/stat and status take no lock of its
 * memory map, and so are read also while it hangs in the midst of a change. What does take it is in
 * collect/process/process_query.h.
 *
 * Runs in: the tool. Threads: the parsers are pure.
 */

#include <sys/types.h>

#include "model/overview/overview.h"

/** /proc/PID/stat; false: that is none. */
bool process_parse_stat(struct overview_process *p, const char *text);
/** /proc/PID/status. Threads of the kernel have no memory there. */
void process_parse_status(struct overview_process *p, const char *text);
/** One process. False: there is none, or not for us. */
bool process_read(pid_t pid, struct overview_process *p);
/** All that are there, without the threads of the kernel. 0 or -errno. Those that end meanwhile are left out. */
int processes_read(struct overview *m);

#endif
