/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ALLOCATOR_TIME_H
#define MODEL_ALLOCATOR_TIME_H

/*
 * How long the calls of the allocator took, and how much of that time was page faults, reclaim and time off the CPU. A
 * call that lies within another one is a part of it. Functions of --function have rows of their own.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its rows, until allocator_time_free(). Pure.
 */

#include "model/table/table.h"
#include "model/trace/event_spans.h"

struct allocator_time;

struct allocator_sums {
    uint64_t calls, total_ns, longest_ns;
    uint64_t part_ns[SPAN_PARTS];
};

struct allocator_time *allocator_time_new(void);
void allocator_time_free(struct allocator_time *a); /* NULL is allowed */
/** Adds a span that has ended, if it is an outermost call of the allocator or of a function (--function). */
void allocator_time_add(struct allocator_time *a, const struct span *ended);
/** Returns whether a call of a function was added. */
bool allocator_time_has_functions(const struct allocator_time *a);
/** Returns the sums of the allocator's calls alone. */
struct allocator_sums allocator_time_sums(const struct allocator_time *a);
/**
 * Returns a row for each function, the one with most time first, at most `top` (0: all). `known`: bits of enum
 * span_part, of which the trace has events; the others have no value. The caller frees the table.
 */
struct table *allocator_time_table(const struct allocator_time *a, unsigned known, uint32_t top);
/** Returns the bits of enum span_part of which a trace with these classes may have events. */
unsigned allocator_time_known(const struct event_class *const *classes, size_t n);

#endif
