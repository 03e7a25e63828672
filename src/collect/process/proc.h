/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROC_H
#define COLLECT_PROC_H

/*
 * What /proc says of a process.
 *
 * Runs in: the tool.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/** Anonymous resident memory in bytes; 0: gone, or not told. */
uint64_t proc_rss_anon_bytes(pid_t pid);
/** The command line, arguments separated by blanks and cut to `max` bytes; "" if it is not to be had. */
void proc_command_line(pid_t pid, size_t max, struct buf *out);
/** Its name; "": not told. */
void proc_name(pid_t pid, struct buf *out);
/** Does the kernel let us look at everybody's processes, but for some that it guards by other means? */
bool proc_may_see_all(void);
/** The path of its program, as it has it; "": not told. */
void proc_program(pid_t pid, struct buf *out);
/** A thread's name, and when it began (CLOCK_BOOTTIME, in steps of 10 ms). False: there is none of that number. */
bool proc_thread(pid_t pid, pid_t tid, char *name, size_t size, uint64_t *began_ns);
/**
 * Does the process map exactly [start, start + bytes)? An image that was replaced by exec does not. 1, 0, or -errno: it
 * may not be looked at, or cannot be.
 */
int proc_maps(pid_t pid, uint64_t start, uint64_t bytes);
/** Is there such a process, and not only its zombie? */
bool proc_runs(pid_t pid);
/** Is the agent in that process? Then it has a ledger, or makes one as soon as something is sampled. */
bool proc_has_agent(pid_t pid);
/** Is it a thread of the kernel? */
bool proc_is_kernel(pid_t pid);

#endif
