/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_RING_SUMS_H
#define RUN_RING_SUMS_H

/*
 * Adds up the events that are read from rings, for `allium trace --sum`: nothing of them is kept but the figures of
 * each key, and the first event that had it.
 *
 * A key with the call site (by=site) includes the site's module, which other events report. These may be in the ring of
 * another CPU and be read later, so the events of a round of reading are held until the next round has ended.
 *
 * Runs in: the tool. Threads: one that adds, and one that reads; a mutex. Owns: what it has added up.
 */

#include "model/profile/wrappers.h"
#include "model/trace/event_sums.h"

struct ring_piece;
struct ring_sums;
struct user_events;

/** `spec` is borrowed. `wrappers`: functions that are passed over when a call is named, borrowed, or NULL. Never
 * returns NULL. */
struct ring_sums *ring_sums_new(const struct sum_spec *spec, const struct wrappers *wrappers);
void ring_sums_free(struct ring_sums *s); /* NULL is allowed */
/** Calls get their names from the ledgers in this folder. */
void ring_sums_set_ledgers(struct ring_sums *s, const char *dir);
/** Events of this class are added from now on, if the spec names it. What the class points to is borrowed. */
void ring_sums_add_class(struct ring_sums *s, const struct event_class *c);

/** Where the events of a piece were made. */
struct ring_sums_source {
    pid_t pid;
    uint64_t image_id;        /* 0: the kernel */
    uint32_t cpu;             /* TRACE_EVENT_NO_CPU: it is not known */
    struct user_events *user; /* the program's own events; NULL: it has none */
};
/** Adds the events of a piece. Returns how many of them are not as described, and were left out. */
uint32_t ring_sums_add(struct ring_sums *s, const struct ring_sums_source *from,
                       const struct ring_piece *piece);
/** Call this after all rings were read once, and twice at the end. `lost`: how many events were lost until now. */
void ring_sums_end_round(struct ring_sums *s, uint64_t lost);

/** Adds what was added up until now to `to`, which has the same spec. */
void ring_sums_read(struct ring_sums *s, struct event_sums *to);

#endif
