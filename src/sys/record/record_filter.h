/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_RECORD_FILTER_H
#define SYS_RECORD_FILTER_H

/*
 * Whose allocations `allium sys record` accounts: those of a process, a thread, a program, a control group. Frees are
 * not filtered, as anybody may free an object; the kernel's own filter by process (set_event_pid) would lose them.
 *
 * Runs in: the tool. Threads: one. Owns: nothing; the texts belong to the caller.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sys/record/tasks.h"

struct record_filter {
    uint32_t process, tid; /* as the machine numbers them; 0: all */
    const char *comm;      /* NULL: all */
    const char *cgroup;    /* with those below it, as in /proc/PID/cgroup; NULL: all */
    bool cgroup_is_v2;     /* of which hierarchy that is */
};

/** Returns whether it leaves anything out. */
bool record_filter_is_set(const struct record_filter *f);
/**
 * Checks that there are such a process and thread, and that they can be told apart; after tasks_read(). Returns 0, or
 * -errno with a line: -EOPNOTSUPP if they cannot.
 */
int record_filter_check(const struct record_filter *f, const struct tasks *t, struct error *e);
/** Tells it of a new thread: a process whose number is used again is another one. */
void record_filter_task(struct record_filter *f, const struct task_event *e);
/** Returns whether it is wanted. `comm`: the program that was running; `process` is 0 in an interrupt. */
bool record_filter_takes(const struct record_filter *f, const struct tasks *t, int32_t tid, int32_t process,
                         const char *comm);

#endif
