/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_PROFILE_H
#define COLLECT_TRACE_PROFILE_H

/*
 * Makes a profile from the events of a trace, with the modules and names of the recording that lies beside them.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing between two calls.
 */

#include <stdint.h>

#include "base/error.h"
#include "collect/trace/event_folder.h"
#include "model/profile/object_accounts.h"
#include "model/profile/profile.h"

/* A span of CLOCK_REALTIME: later than from_ns, up to to_ns. */
struct trace_span {
    uint64_t from_ns; /* 0: from the beginning on */
    uint64_t to_ns;   /* UINT64_MAX: to the end */
};

struct trace_profile_counts {
    uint64_t events;
    /* frees of blocks without an allocation in the trace, which the program did not inherit from its parent */
    uint64_t unknown_frees;
    uint64_t early_frees;   /* frees that came before the allocation of their block (early_frees.h) */
    uint64_t without_stack; /* allocations of a trace with stacks that have only their call */
    struct profile_older_frees older;
    struct trace_losses losses;
    int64_t wall_step_ns; /* event_folder_wall_step_ns() */
    uint32_t clock;       /* in the profile: event_folder_clock(); "": the events have times */
    uint32_t filter;      /* in the profile: the query that the events match; "": there is none */
};

/**
 * Replaces the figures of `p` by those of the blocks that were allocated in the span, as they are at its end. Sites
 * that the recording does not know get a location without a name. Returns 0, or -errno with a line.
 */
int trace_profile_read(struct profile *p, const char *folder, struct trace_span span,
                       struct trace_profile_counts *counts, struct error *e);
/* Further results of the same reading, besides the profile. */
struct trace_profile_also {
    struct object_calls *calls;             /* the calls are counted here, too; NULL: they are not counted */
    const struct object_listener *listener; /* is told of each life in the span; NULL: no listener */
};
int trace_profile_read_also(struct profile *p, const char *folder, struct trace_span span,
                            struct trace_profile_also also, struct trace_profile_counts *counts,
                            struct error *e);

#endif
