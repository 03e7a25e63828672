/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ATTACH_STOP_H
#define ATTACH_STOP_H

/*
 * Stops the threads of a process, and lets them go on as if nothing had been: system calls that any stop interrupts are
 * issued again.
 *
 * Runs in: the tool, which traces the threads meanwhile (ptrace). If the tool is killed, the kernel lets them go on.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/error.h"
#include "base/vec.h"

/**
 * A thread, and its registers at the stop. If a system call was interrupted, the kernel has not restarted it yet: rip
 * is behind the call, and rax has the kernel's code for it (-ERESTARTSYS).
 */
struct stopped_thread {
    pid_t tid;
    struct user_regs_struct regs;
    bool is_away; /* in a call that it ends by itself: its registers are others by now */
};

struct stopped {
    pid_t pid;
    struct VEC(struct stopped_thread) threads;
};

/**
 * While threads are stopped the tool is to run before others, if it may: threads that go on again would take the CPU
 * from it before it has let all go on.
 */
void stop_hurry(bool hurry);
/** Stops one thread. Returns 0, or -errno with a line. */
int stop_thread(struct stopped *s, pid_t tid, struct error *e);
/** Stops all threads of the process. */
int stop_all(struct stopped *s, struct error *e);
/** Lets all stopped threads go on. */
void stop_release(struct stopped *s);
/** Waits until the traced thread stops by PTRACE_INTERRUPT; signals that come before are delivered. */
bool stop_wait(pid_t tid);
/** Waits for the next stop of any kind. Returns 1; 0: the thread has ended; -1: the deadline has passed. */
int stop_wait_any(pid_t tid, uint64_t deadline_ns, int *status);

struct thread_ids VEC(pid_t);

/** Adds the ids of the process's threads to the list. Returns false if it has ended. */
bool stop_list(pid_t pid, struct thread_ids *out);

#endif
