/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_RING_SUMS_H
#define RUN_RING_SUMS_H

/*
 * Adds up the events that are read from rings, for `allium trace --sum`: nothing of them is kept but the figures of
 * each key, and the first event that had it.
 *
 * Runs in: the tool. Threads: any; a mutex. Owns: what it has added up.
 */

#include "model/trace/event_sums.h"

struct ring_piece;
struct ring_sums;

/** `spec` is borrowed. Never returns NULL. */
struct ring_sums *ring_sums_new(const struct sum_spec *spec);
void ring_sums_free(struct ring_sums *s); /* NULL is allowed */
/** Events of this class are added from now on, if the spec names it. What the class points to is borrowed. */
void ring_sums_add_class(struct ring_sums *s, const struct event_class *c);
/** Adds the events of a piece. */
void ring_sums_add(struct ring_sums *s, const struct ring_piece *piece, pid_t pid, uint32_t cpu);
/** Adds what was added up until now to `to`, which has the same spec. */
void ring_sums_read(struct ring_sums *s, struct event_sums *to);

#endif
