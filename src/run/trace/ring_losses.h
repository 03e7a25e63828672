/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_RING_LOSSES_H
#define RUN_RING_LOSSES_H

/*
 * What a ring has lost since its follower came to it.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "collect/trace/ring_image.h"

struct ring_losses {
    uint64_t before[RING_LOSSES]; /* events that were lost before */
};

static inline void ring_losses_begin(struct ring_losses *l, const struct ring_reader *r, uint32_t ring)
{
    for (int why = 0; why < RING_LOSSES; why++)
        l->before[why] = ring_reader_lost(r, ring, (enum ring_loss)why);
}

static inline uint64_t ring_losses_of(const struct ring_losses *l, const struct ring_reader *r, uint32_t ring,
                                      enum ring_loss why)
{
    return ring_reader_lost(r, ring, why) - l->before[why];
}

/** Returns the events that were lost until now, without those that a filter excludes. */
static inline uint64_t ring_losses_all(const struct ring_losses *l, const struct ring_reader *r,
                                       uint32_t ring)
{
    uint64_t lost = 0;
    for (int why = 0; why < RING_LOSSES; why++)
        lost += why == RING_LOST_FILTERED ? 0 : ring_losses_of(l, r, ring, (enum ring_loss)why);
    return lost;
}

/** The same until a piece. */
static inline uint64_t ring_losses_until(const struct ring_losses *l, const struct ring_piece *p)
{
    uint64_t lost = 0;
    for (int why = 0; why < RING_LOSSES; why++)
        lost += why == RING_LOST_FILTERED ? 0 : p->lost[why] - l->before[why];
    return lost;
}

#endif
