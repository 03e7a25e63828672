/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_EVENT_LOSSES_H
#define MODEL_EVENT_LOSSES_H

/*
 * The events of a trace that were lost while they were recorded: how many on each CPU, and when.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its lists, until event_losses_release().
 */

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/** Events of a CPU that were lost. */
struct cpu_loss {
    const char *domain; /* "ust" or "kernel" */
    uint32_t cpu;
    uint64_t events;
    size_t last; /* the number of its latest stretch */
};

/** A stretch of time in which events of a CPU were lost; others of it may be there. */
struct lost_stretch {
    const char *domain;
    uint32_t cpu;
    uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC */
    uint64_t events;
};

/* Zero at first. */
struct event_losses {
    struct VEC(struct cpu_loss) by_cpu;
    struct VEC(struct lost_stretch) stretches;
};

/** Adds a stretch. If it begins where the latest stretch of its CPU ends, that one becomes longer. */
void event_losses_add(struct event_losses *l, const struct lost_stretch *s);
void event_losses_release(struct event_losses *l);

#endif
