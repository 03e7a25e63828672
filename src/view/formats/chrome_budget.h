/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_CHROME_BUDGET_H
#define VIEW_CHROME_BUDGET_H

/*
 * Chooses what of a trace fits into a file of a limited size. All records are offered once, to learn their sizes, and a
 * second time, to be taken or left out: of slices the longest are taken, of instants every n-th one, and of counters a
 * few values for each step of time.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its heap, until chrome_budget_free(). Pure.
 * Invariant: what it takes has at most the bytes that it was given.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chrome_budget;

struct chrome_left_out {
    uint64_t slices, instants;
    uint64_t shortest_ns; /* no slice that is longer than this was left out */
    uint64_t step_ns;     /* of counters; 0: they have all values */
};

struct chrome_budget *chrome_budget_new(uint64_t most_bytes);
void chrome_budget_free(struct chrome_budget *b); /* NULL is allowed */

/** The first time: a record's bytes. */
void chrome_budget_offer_slice(struct chrome_budget *b, uint64_t duration_ns, size_t bytes);
void chrome_budget_offer_instant(struct chrome_budget *b, size_t bytes);
void chrome_budget_offer_counter(struct chrome_budget *b, size_t bytes);
/** Between the two: `fixed_bytes` of the file are taken already, the trace lasts `span_ns` and has `counters` tracks of
 * counters. */
void chrome_budget_decide(struct chrome_budget *b, uint64_t fixed_bytes, uint64_t span_ns, uint64_t counters);
/** The second time, in the same order: returns whether the record is to be written. */
bool chrome_budget_take_slice(struct chrome_budget *b, uint64_t duration_ns, size_t bytes);
bool chrome_budget_take_instant(struct chrome_budget *b, size_t bytes);
bool chrome_budget_take_counter(struct chrome_budget *b, size_t bytes);
/** Returns the step of time in which a counter may have two values; 0: all of them. */
uint64_t chrome_budget_step(const struct chrome_budget *b);
struct chrome_left_out chrome_budget_left_out(const struct chrome_budget *b);

#endif
