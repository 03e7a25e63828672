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
#include <sys/types.h>
#include <sys/user.h>

#include "base/error.h"
#include "base/vec.h"

/** A thread, and its registers as the kernel has them: a system call that it restarts is not begun again yet. */
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

struct thread_ids VEC(pid_t);

/** Adds the ids of the process's threads to the list. Returns false if it has ended. */
bool stop_list(pid_t pid, struct thread_ids *out);

#endif
