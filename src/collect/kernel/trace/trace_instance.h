/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_INSTANCE_H
#define COLLECT_TRACE_INSTANCE_H

/*
 * An instance of the kernel's tracing (tracefs, instances/allium-PID.NAMESPACE): buffers and events of our own, so that
 * other tracing on the machine stays as it is. tracefs is mounted for this process alone, at no place in the file
 * system. The top-level buffers, which belong to everybody, can be opened in the same form, for boot_trace.h.
 *
 * Runs in: the tool, as root. Threads: one. Owns: the instance, until trace_instance_remove(), and a child process that
 * waits for this process's end: if it is killed, the child switches tracing off and removes the instance. If both are
 * killed the instance is left behind; the next trace_instance_create() removes those of processes that are gone.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct trace_instance {
    int tracefs_fd; /* the root of tracefs */
    int fd;         /* the folder of the instance; tracing is off at first */
    char name[64];  /* "": the top level */
    pid_t guard;    /* the child; 0: none */
    int guard_fd;   /* closed when this process ends */
};

/** Returns 0, or -errno with a line. */
int trace_instance_create(struct trace_instance *t, struct error *e);
/** Opens the top level, and changes nothing there. Returns as above. */
int trace_instance_open_top(struct trace_instance *t, struct error *e);
/** Removes the instance; of the top level, which stays, only the descriptors are closed. */
void trace_instance_remove(struct trace_instance *t);

/** Writes a file of the instance, such as "trace_clock". Returns 0, or -errno with a line. */
int trace_instance_write(const struct trace_instance *t, const char *file, const char *text, struct error *e);

#endif
