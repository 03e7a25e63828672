/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_TRACER_OPTIONS_H
#define AGENT_TRACER_OPTIONS_H

/*
 * The tracer's options, which follow the number in ALLIUM_SITES.
 *
 * Runs in: target. Threads: any; they are read once, before the first event.
 */

#include <stdbool.h>
#include <stdint.h>

/* What an event tells of its call. */
enum tracer_stacks { TRACER_STACKS_SITE, TRACER_STACKS_NONE, TRACER_STACKS_FULL };

/* Ranges of numbers that events may have, both ends included; none: all may be. */
#define TRACER_RANGES_MAX 8u
struct tracer_ranges {
    uint32_t n;
    struct {
        uint64_t low, high;
    } at[TRACER_RANGES_MAX];
};

#define TRACER_EVERY_MOST 65536u

struct tracer_options {
    uint64_t buffer_bytes; /* ",buffer=BYTES": the size of each CPU's ring; 0: not set */
    bool wants_mono;       /* ",clock=mono": times are of CLOCK_MONOTONIC */
    bool counts;           /* ",clock=counter": times are numbers */
    bool untimed;          /* ",clock=none": there are no times */
    uint64_t every; /* ",clock=every:N": each Nth event has a time, N being a power of two; 0: not set */
    bool begins;    /* ",begin": events of the group `begin`, too */
    enum tracer_stacks stacks; /* ",stacks=none", ",stacks=full" */
    /* ",sizes=LOW-HIGH+LOW-HIGH...", ",threads=...": allocations outside are not written, only counted */
    struct tracer_ranges sizes, threads;
};
extern struct tracer_options tracer_options __attribute__((visibility("hidden")));

/** Reads them from the environment. Called once. */
void tracer_options_read(void);
/** Returns whether the events need the hooks of tracer_general.h. */
static inline bool tracer_options_are_general(void)
{
    return tracer_options.begins || tracer_options.stacks != TRACER_STACKS_SITE || tracer_options.sizes.n ||
           tracer_options.threads.n;
}

#endif
