/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_EVENT_ROLES_H
#define MODEL_EVENT_ROLES_H

/*
 * Which events of a trace begin and end something that takes time: a call of the allocator, a span of the program
 * (ALLIUM_SPAN), a call of a function (--function), a page fault, reclaim, a system call that changes mappings, time
 * off the CPU.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its tables, until event_roles_free(); classes are the caller's.
 */

#include <stdbool.h>

#include "model/trace/trace_event.h"

enum span_kind {
    SPAN_CALL,     /* of the allocator */
    SPAN_OWN,      /* of the program: ALLIUM_SPAN */
    SPAN_FUNCTION, /* a call of a function of --function */
    SPAN_FAULT,    /* a page fault */
    SPAN_RECLAIM,  /* direct reclaim of memory */
    SPAN_MAPS,     /* brk, mmap, munmap, mremap, madvise, mprotect */
    SPAN_OFF_CPU,  /* the thread does not run */
    SPAN_KINDS
};

enum event_step {
    EVENT_STEP_NONE,
    EVENT_STEP_BEGINS,
    EVENT_STEP_ENDS,
    EVENT_STEP_SWITCHES /* one thread leaves the CPU and another one takes it */
};

struct event_role {
    enum event_step step;
    enum span_kind kind;
    /* An event ends what an event with an equal name has begun: "malloc", "page_fault"; "shop:parse" of the program,
     * "function:getenv" of a function. */
    const char *name;
    bool needs_begin; /* this beginning is one only if the trace has group `begin`: `free` */
    bool is_begin;    /* only group `begin` has this event */
    bool is_alone;    /* a beginning of the program's of which the trace has no end: see event_spans.h */
};

struct event_roles;

/** `classes`: all of the trace. They must stay as long as this. */
struct event_roles *event_roles_new(const struct event_class *const *classes, size_t n);
void event_roles_free(struct event_roles *r); /* NULL is allowed */
/** Returns the role of an event, which stays valid. */
const struct event_role *event_roles_of(struct event_roles *r, const struct trace_event *e);

#endif
