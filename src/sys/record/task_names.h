/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_TASK_NAMES_H
#define SYS_TASK_NAMES_H

/*
 * The names of threads, as the kernel knows them (comm), by their numbers in the whole machine. They are read from
 * /proc at first; later events change them.
 *
 * Runs in: the tool. Threads: one. Owns: the names, until task_names_release().
 */

#include <stdint.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/vec.h"

#define TASK_NAME_BYTES 16 /* with the NUL */

struct task_name {
    int32_t tid;
    char text[TASK_NAME_BYTES];
};

struct task_names {
    struct map index; /* by thread */
    struct VEC(struct task_name) names;
};

/** Reads the threads that exist. In a container that numbers threads otherwise, nothing is read. */
void task_names_read(struct task_names *t);
/** `name` need not end with a NUL; at most TASK_NAME_BYTES - 1 of `bytes` count. */
void task_names_set(struct task_names *t, int32_t tid, const char *name, uint32_t bytes);
/** Reads lines of a thread, a blank and its name, as those of tracefs's saved_cmdlines. */
void task_names_parse(struct task_names *t, const char *text);
/** Appends such lines. */
void task_names_add_lines(const struct task_names *t, struct buf *b);
/** Returns the name; "[idle]" of thread 0, "[unknown]" if it is not known. */
const char *task_names_find(const struct task_names *t, int32_t tid);
void task_names_release(struct task_names *t);

#endif
