/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_TRACE_ATTACH_H
#define RUN_TRACE_ATTACH_H

/*
 * `allium trace PID`: traces a process that runs already, until a signal comes, a time is over or the process ends; or
 * adds its events up in place of writing them.
 *
 * Runs in: the tool. Threads: the caller's, and those of ring_follow.h and kernel_follow.h. Owns: nothing.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "run/trace/kernel_follow.h"
#include "run/trace/ring_follow.h"

struct trace_attach_options {
    pid_t pid;
    /* If not NULL, no folder is made, and events are added to these sums: the kernel's if `kernel_groups` is not 0,
     * else those of `events`. NULL: the events are written. */
    struct ring_sums *sums;
    const char *folder; /* NULL: ./NAME.PID.trace */
    bool force;
    const char *events;                /* wire/event_list.h; NULL: those that are selected (trace_switch.h) */
    const char *where;                 /* a query: the events that are kept, see ring_follow.h; NULL: all */
    uint32_t kernel_groups;            /* the kernel's events of these groups, too, see kernel_follow.h */
    const struct probe_list *probes;   /* functions whose calls are events, too; NULL: none */
    void (*priced)(const char *line);  /* called before the start, with the cost of the probes; may be NULL */
    uint64_t kernel_ring_bytes;        /* of each ring, of which a CPU has two */
    uint64_t limit_bytes, duration_ns; /* 0: the default, and until a signal */
    void (*started)(void *arg, const char *folder); /* called when it has begun; NULL: nothing is */
    void (*step)(void *arg);                        /* called every 50 ms; NULL: nothing is */
    void *arg;
};

struct trace_attach_result {
    char *folder;   /* of the trace, or NULL; the caller frees it */
    bool writes;    /* the process itself writes events */
    bool has_agent; /* it has the agent: its ledger has names for the events */
    struct ring_follow_counts traced;
    struct kernel_follow_counts kernel;
};

/** Returns 0, or -errno with a line; -EPERM and -EOPNOTSUPP: what is asked for is not possible here. */
int trace_attach(const struct trace_attach_options *o, struct trace_attach_result *out, struct error *e);

#endif
