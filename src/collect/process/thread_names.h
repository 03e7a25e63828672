/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_THREAD_NAMES_H
#define COLLECT_THREAD_NAMES_H

/*
 * The present names of threads. The ledger has the name of a thread at its first sample, and many threads are
 * named later by their creator. /proc has the present name as long as the thread runs; names that were seen
 * are kept for later.
 */

#include "base/vec.h"
#include "model/profile/profile.h"

#include <sys/types.h>

#define THREAD_NAME_BYTES 16

struct thread_name {
    char text[THREAD_NAME_BYTES]; /* "": never seen */
};
struct thread_names {
    struct VEC(struct thread_name) of; /* by thread of the profile, in the order of the ledger */
    uint64_t read_ns;                  /* when they were read (CLOCK_MONOTONIC) */
};

/**
 * Reads the names of the running process's threads into the profile and into `seen` (may be NULL). A thread
 * keeps its old name if it is in another pid namespace, where tids differ, or if its tid belongs to another
 * thread by now. With `seen`, reads /proc only once a second, unless there is a new thread.
 */
void thread_names_read(struct thread_names *seen, struct profile *p, pid_t pid);
/** Gives the threads of an ended process the names that were seen. */
void thread_names_recall(const struct thread_names *seen, struct profile *p);
void thread_names_release(struct thread_names *seen);

#endif
