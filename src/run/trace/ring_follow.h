/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_RING_FOLLOW_H
#define RUN_RING_FOLLOW_H

/*
 * Reads the rings of all process images in a recorder's folder while they are written, by a thread of its own, and
 * writes them as CTF, or adds them up. The rings of an image that has ended are read to their end, and removed.
 *
 * When the trace may grow no more, reading goes on, and events are only counted.
 *
 * Runs in: the tool. Threads: the caller's, and one that this makes. Owns: mappings and files, until ring_follow_end().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/trace/user_classes.h"
#include "run/trace/counter_price.h"
#include "run/trace/trace_budget.h"

struct ring_follow;
struct ring_sums;

struct ring_follow_options {
    const char *dir;    /* of the ledgers */
    const char *folder; /* of the trace; not used with `sums` */
    /* The events are added to this, which is the caller's, in place of writing them. NULL: they are written. */
    struct ring_sums *sums;
    uint64_t limit_bytes; /* of the folder; 0: the default */
    uint64_t duration_ns; /* 0: until the end */
    /* The rings of this process alone are read, from now on, and stay; 0: those of all, which are removed. */
    pid_t only;
    const char *clock; /* "counter", "none", "every:N" (ring_layout.h); NULL: all events have times */
    const char *where; /* a query: which events are written, see collect/trace/block_filter.h; NULL: all */
};

struct ring_follow_counts {
    uint64_t images, mono_images; /* mono_images: their events have CLOCK_MONOTONIC from the start */
    uint64_t events, bytes;       /* in the folder */
    uint64_t full, no_room, no_ring, overwritten; /* events that were lost in the rings, by reason */
    const char *clock;                            /* of struct ring_follow_options */
    uint64_t ambiguous;                           /* with "none", "every:N": event_order_ambiguous() */
    uint64_t ahead;                               /* with `where`: events with times in the future */
    bool has_filter;                              /* `where` is there */
    uint64_t filtered;                            /* events that it excludes */
    uint64_t damaged;                             /* pieces of rings that could not be read */
    uint64_t unwritten;                           /* events that happened after the trace had stopped */
    enum trace_stop stopped;                      /* why it stopped before the end */
    uint64_t limit_bytes, spare_bytes;            /* of struct trace_budget */
    uint64_t rings, ring_bytes;                   /* of one image: number, and size of each */
    uint64_t span_ns;                             /* from the first events to the last */
    double busiest_bytes_per_s;                   /* the highest rate of one ring; 0: not known */
    uint64_t worst_lost_bytes;                    /* estimate: what the ring with most losses lacked */
    uint64_t cpu_ns;                              /* of the thread */
    /* the largest of struct tick_clock; 0: no time was converted, or it is not known */
    double residual_ns;
    struct user_counts user;    /* of the program's own events */
    struct counter_price price; /* with the clock "counter" */
};

/** Returns the events that were lost. */
static inline uint64_t ring_follow_lost(const struct ring_follow_counts *n)
{
    return n->full + n->no_room + n->no_ring + n->overwritten;
}

/** Starts the thread. The folder of the trace must exist. Returns 0, or -errno with a line. */
int ring_follow_begin(struct ring_follow **out, const struct ring_follow_options *o, struct error *e);
/**
 * Reads what is left, and ends the thread. Returns 0, or -errno with a line: the trace ends before the program.
 * NULL is allowed.
 */
int ring_follow_end(struct ring_follow *f, struct ring_follow_counts *out, struct error *e);

#endif
