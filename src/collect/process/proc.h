/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROC_H
#define COLLECT_PROC_H

/* Reads facts about a process from /proc. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* What /proc/PID/status says. */
struct proc_status {
    uint64_t rss_anon_bytes;  /* anonymous resident memory; 0: the process is ending */
    unsigned seccomp;         /* the mode; 0: none */
    unsigned seccomp_filters; /* their number; 0 before Linux 5.9 */
    uid_t user;               /* its effective user id in our user namespace */
    pid_t tgid;               /* the process, of which the number may be a thread's */
    pid_t inner_pid;          /* its pid in its own PID namespace; 0: not known */
};

/** Reads the status of a process. Returns false if it cannot be read; then *s is zero. */
bool proc_status(pid_t pid, struct proc_status *s);
/** The same in two steps, for a caller that reads it often. Opening returns -1 if the process cannot be examined. */
int proc_status_open(pid_t pid);
bool proc_status_read(int fd, struct proc_status *s);
/** Appends the command line, with arguments separated by blanks and cut to `max` bytes; "" if it cannot be
 * read. */
void proc_command_line(pid_t pid, size_t max, struct buf *out);
/** Appends its name; "": not known. */
void proc_name(pid_t pid, struct buf *out);
/** Returns whether the kernel lets us examine the processes of all users, except some that it protects by
 * other means. */
bool proc_may_see_all(void);
/** Appends the path of its program, in its own mount namespace; "": not known. */
void proc_program(pid_t pid, struct buf *out);
/** Gets a thread's name and start (CLOCK_BOOTTIME, in steps of 10 ms). Returns false if there is no such
 * thread. */
bool proc_thread(pid_t pid, pid_t tid, char *name, size_t size, uint64_t *began_ns);
/**
 * Returns whether the process maps exactly [start, start + bytes): 1, 0, or -errno if it cannot be examined.
 * After exec, the image that was replaced is not mapped any more.
 */
int proc_maps(pid_t pid, uint64_t start, uint64_t bytes);
/** Returns whether there is such a process, not counting a zombie. */
bool proc_runs(pid_t pid);
/**
 * Returns whether the process has loaded the agent. Then it has a ledger, or makes one at its first sample.
 */
bool proc_has_agent(pid_t pid);
/** Returns whether it is a kernel thread. */
bool proc_is_kernel(pid_t pid);
/** Returns false if it has no program: kernel threads, and processes that are ending. Fast. True: perhaps it has. */
bool proc_has_program(pid_t pid);
/**
 * Appends the ids of the processes whose program or comm is called `name`, at most `most` of them, separated by ", ".
 * Kernel threads and this process are left out. Returns how many there are in all.
 */
unsigned proc_pids_named(const char *name, unsigned most, struct buf *out);

#endif
