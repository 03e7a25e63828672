/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_EVENT_SPANS_H
#define MODEL_EVENT_SPANS_H

/*
 * What takes time in a trace, from the events in their order: for each thread a stack of the spans that have begun and
 * not ended. It says what lies within what, how long each span took, and how much of the allocator's time was spent in
 * page faults, in reclaim and off the CPU.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its stacks, until event_spans_free(). Pure.
 * Invariant: a span that lies within another one of its thread ends before it, except those of the program itself
 * (SPAN_OWN), which may cross. If the events of an end or of a beginning were lost, its span is counted and left out.
 *
 * A program describes an event when it first happens, so a trace does not have the end of a span that has never ended.
 * An event of the program whose name ends in "_begin", and that has no matching end, begins a span if it happens once
 * in its thread. If it happens again, it begins nothing.
 */

#include <stdbool.h>

#include "model/trace/event_roles.h"

struct event_spans;

/* Parts of a call of the allocator. Their time within the call is that of a union of intervals: a fault in which memory
 * is reclaimed counts once as a fault, once as reclaim, and once as `any`. */
enum span_part { SPAN_PART_FAULTS, SPAN_PART_RECLAIM, SPAN_PART_OFF_CPU, SPAN_PART_ANY, SPAN_PARTS };

struct span {
    const struct event_role *role; /* of the event with which it began */
    const struct event_class *class;
    const unsigned char *fields; /* of that event */
    uint64_t began_ns, ended_ns; /* CLOCK_MONOTONIC */
    uint64_t image_id;           /* 0: an event of the kernel */
    uint64_t number;             /* of the event with which it began, among all that were taken, from 0 */
    pid_t pid;
    uint32_t thread;
    bool crosses;    /* one that began later had not ended yet */
    bool unfinished; /* it had not ended when the trace, the thread or the program ended */
    bool chosen;     /* see event_spans_choose() */
    bool outermost;  /* no call of the allocator is around it; of a function: no call of the same one */
    uint64_t part_ns[SPAN_PARTS]; /* of an outermost call */
};

/* What one event changes. */
struct span_change {
    bool is_instant;    /* the event neither begins nor ends anything */
    uint32_t depth;     /* how many spans of its thread are around the event; of an end: around its span */
    const char *within; /* the innermost call of the allocator around it; NULL: there is none */
    const struct span *ended;   /* the span of the event's thread that it ends; NULL: none */
    const struct span *off_cpu; /* EVENT_STEP_SWITCHES: of the thread that takes the CPU; NULL: not known */
    const struct span *unfinished; /* spans that will never end, as their thread or program is over */
    size_t n_unfinished;
};

struct span_counts {
    uint64_t unended;        /* spans whose ends are missing, except faults */
    uint64_t unbegun;        /* ends whose beginnings are missing */
    uint64_t faults_unended; /* a fault that ends with a signal has no end, too */
};

struct event_spans *event_spans_new(const struct event_class *const *classes, size_t n);
void event_spans_free(struct event_spans *s); /* NULL is allowed */
/** Takes the next event of the trace. What *change points to is valid until the next call. */
void event_spans_take(struct event_spans *s, const struct trace_event *e, struct span_change *change);
/** Chooses the span that the last event has begun, if it has begun one: `chosen` of the span tells so later. */
void event_spans_choose(struct event_spans *s);
/** After the last event: sets `unfinished` of *change to the spans that have not ended. */
void event_spans_finish(struct event_spans *s, struct span_change *change);
/** Returns the event with which a span began, without its CPU and flags. `offset_ns`: from CLOCK_MONOTONIC to
 * CLOCK_REALTIME. */
struct trace_event event_spans_beginning(const struct span *s, uint64_t offset_ns);
struct span_counts event_spans_counts(const struct event_spans *s);
/** Returns whether an event of group `begin` was there until now: only then calls have durations. */
bool event_spans_has_begin(const struct event_spans *s);

#endif
