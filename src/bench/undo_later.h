/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_UNDO_LATER_H
#define BENCH_UNDO_LATER_H

/*
 * Undoes a change of the machine, also if the command is killed by SIGKILL: a process waits for the end of a pipe that
 * only the command keeps open. Nothing helps if that process is killed as well; then the next command finds the change
 * by the lock (flock(2)) that both hold: a change without a lock has no owner.
 *
 * Runs in: the tool. Threads: one. Owns: the process and the pipe, until undo_later_end().
 */

#include <sys/types.h>

struct undo_later {
    pid_t process;
    int alive; /* the pipe's end that only the command keeps open */
};

/** Returns 0 or a positive errno. Runs in another process, with the memory that there was at the start. */
typedef int undo_fn(const void *arg);

/**
 * Starts the process. Of the descriptors of the command it keeps the two of `keep`, in any order; -1: none. Returns 0
 * or -errno; then nothing will be undone.
 */
int undo_later_start(struct undo_later *u, undo_fn *undo, const void *arg, const int keep[2]);
/** Lets the process undo the change, and waits for its end. Returns 0 or the -errno of undoing. */
int undo_later_end(struct undo_later *u);
/** To be called in each child process of the command: closes the pipe there. */
void undo_later_forked(const struct undo_later *u);

/**
 * Opens and locks the folder that stands for the change. Returns a descriptor, which the caller and the process keep;
 * -EWOULDBLOCK: it has an owner; -ENOENT: it was removed meanwhile; or another -errno.
 */
int undo_later_lock(int at, const char *folder);

#endif
