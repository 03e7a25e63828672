/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_TRACE_SNAPSHOT_H
#define RUN_TRACE_SNAPSHOT_H

/*
 * Writes what rings have at this moment as a trace. The rings are only read, and their processes may run, hang or have
 * ended. No event is later than the beginning of the snapshot, so the snapshot shows all rings at one moment. Each ring
 * reaches back to a time of its own: all of them are complete only from `complete_ns` on.
 *
 * Runs in: the tool. Threads: any, one for each snapshot. Owns: nothing.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/trace/user_classes.h"

struct tick_clock;

struct trace_snapshot_source {
    const char *dir, *rings; /* the folder, and the name of the rings in it */
};

/* The kernel's rings, mapped (run/trace/kernel_follow.h). */
struct trace_snapshot_kernel {
    void *rings; /* NULL: there are none */
    size_t bytes;
    const struct event_class *classes; /* of their events */
    uint32_t n_classes;
};

struct trace_snapshot_options {
    uint64_t last_ns;               /* from the newest event back; 0: all events */
    const struct tick_clock *clock; /* NULL: that of each image's ledger */
    struct trace_snapshot_kernel kernel;
};

struct trace_snapshot_counts {
    uint64_t images, events, bytes;
    uint64_t older;         /* events that were before those in the rings */
    uint64_t lost;          /* events that found no place in the rings */
    uint64_t damaged;       /* pieces of rings that could not be read */
    uint64_t kernel_events; /* of `events` */
    struct user_counts user;
    uint64_t oldest_ns, newest_ns; /* times of events; 0: there are none */
    uint64_t complete_ns;          /* from here on all rings are complete */
};

/**
 * Writes into the new folders `ust` and, with the kernel's rings, `kernel` in the folder `folder`, which must exist.
 * Returns 0, or -errno with a line.
 */
int trace_snapshot_write(const char *folder, const struct trace_snapshot_source *sources, size_t n,
                         const struct trace_snapshot_options *o, struct trace_snapshot_counts *out,
                         struct error *e);

#endif
