/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_TASKS_H
#define SYS_TASKS_H

/*
 * The threads of the machine, by their numbers in it: their names (comm), processes and control groups. They are read
 * from /proc at first; later events change them.
 *
 * Runs in: the tool. Threads: one. Owns: the names, until tasks_release().
 */

#include <stdint.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/vec.h"
#include "collect/kernel/trace/task_format.h"

#define TASK_NAME_BYTES 16 /* with the NUL */
#define TASKS_IDLE      "[idle]"
#define TASKS_NO_NAME   "[unknown]"

struct task {
    int32_t tid;
    char name[TASK_NAME_BYTES];
    int32_t process; /* TASK_UNKNOWN: not known */
    uint32_t cgroup; /* of the thread that leads a process: a number for tasks_cgroup() */
};

#define TASK_UNKNOWN (-1)

struct tasks {
    struct map index; /* by thread */
    struct VEC(struct task) all;
    struct VEC(char *) cgroups; /* paths; the first one is "": not known */
    struct map cgroup_index;
    int32_t hierarchy; /* that of the memory controller, as in /proc/PID/cgroup; -1: not known */
};

/** Reads the threads that exist. In a container that numbers threads otherwise, nothing is read. */
void tasks_read(struct tasks *t);
void tasks_add(struct tasks *t, const struct task_event *e);
/** `name` need not end with a NUL; at most TASK_NAME_BYTES - 1 of `bytes` count. */
void tasks_set_name(struct tasks *t, int32_t tid, const char *name, uint32_t bytes);
/** Reads lines of a thread, a blank and its name, as those of tracefs's saved_cmdlines. */
void tasks_parse(struct tasks *t, const char *text);
/** Appends such lines. */
void tasks_add_lines(const struct tasks *t, struct buf *b);
/** Appends the rest as lines: processes and control groups. */
void tasks_add_groups(const struct tasks *t, struct buf *b);
/** Reads such lines. Lines of another form are passed over. */
void tasks_parse_groups(struct tasks *t, const char *text);
/** Returns the thread; one without a process if it is not known. Valid until the next change. */
const struct task *tasks_find(const struct tasks *t, int32_t tid);
/** Returns its name; "[unknown]" if it has none. */
const char *tasks_name(const struct task *task);
/** Returns the path of the control group that has a process's memory; NULL: not known. */
const char *tasks_cgroup(const struct tasks *t, int32_t process);
void tasks_release(struct tasks *t);

#endif
