/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_CLOCK_SKEW_H
#define MODEL_CLOCK_SKEW_H

/*
 * Events of CPUs whose clocks differ a little, as ftrace's clock `local` does, on their way to the accounts: an object
 * may seem to be freed before it is allocated, or allocated again before it is freed. If two events of one object, on
 * different CPUs and less than 100 us apart, make sense only in the other order, they are put into it.
 *
 * Runs in: the tool. Threads: one. Owns: copies of the events of the last 100 us, until clock_skew_free().
 */

#include <stdint.h>

#include "model/kernel/kmem_accounts.h"

struct clock_skew;

/** `to` must outlive it. Never NULL. */
struct clock_skew *clock_skew_new(struct kmem_accounts *to);
void clock_skew_free(struct clock_skew *s); /* NULL is allowed */

/** Takes a copy of an event. Events must come in the order of their times. */
void clock_skew_add(struct clock_skew *s, const struct kmem_event *e);
/** After the last event: accounts for those that wait. */
void clock_skew_end(struct clock_skew *s);
/** Returns the number of pairs that were put into the other order. */
uint64_t clock_skew_pairs(const struct clock_skew *s);

#endif
