/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ADDRESS_INFO_H
#define MODEL_ADDRESS_INFO_H

/*
 * What a profile knows of one address: the sampled blocks, live or freed lately, that it lies in; where there is none,
 * those that it lies close to. And how much is known of frees at all.
 *
 * Runs in: the tool. Threads: pure functions of a profile, which must be valid and outlive the answer.
 * Owns: its lists, until who_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/profile/profile.h"

#define WHO_NEAR_BYTES 64 /* a block this far away may still be what was overrun */

enum who_place {
    WHO_INSIDE, /* of what was asked for; the first byte of a block of none is inside, too */
    WHO_SLACK,  /* past its end, in what the allocator gave beyond it */
    WHO_BEFORE, /* at most WHO_NEAR_BYTES before its first byte */
    WHO_BEHIND, /* fewer than that past the last byte it has */
};

struct who_block {
    bool live;
    uint32_t index; /* in the profile's samples if live, else in its frees */
    enum who_place place;
    uint64_t bytes; /* INSIDE: from its beginning; BEFORE: up to there; else: from its end, as asked for */
};

struct who {
    uint64_t address;
    /* The block's extent is what was asked for and, of a live one, what the allocator gave beyond. Live ones come first,
     * then the freed ones, the latest first. */
    struct VEC(struct who_block) holding;
    /* Only where none holds it: of each image the nearest live block and the nearest freed one on either side, the latest
     * of equals. Live ones first, then by distance. */
    struct VEC(struct who_block) near;
};

void who_find(struct who *w, const struct profile *p, uint64_t address);
void who_release(struct who *w);

/** How many frees of sampled blocks there were, and what is left of them. */
struct who_frees {
    uint64_t freed;      /* in all; at least `remembered` */
    uint64_t remembered; /* in the profile */
    uint64_t reach_ns;   /* the oldest of these, before the reading or end of its image */
};
struct who_frees who_frees_of(const struct profile *p);

/** The probability that a block of this size is sampled: 1 - exp(-size / period); 1 at period 1. No bytes count as one. */
double who_chance(uint64_t size_bytes, uint64_t period_bytes);
/** How long a freed block had lived; 0 where clocks disagree. */
static inline uint64_t who_lifetime_ns(const struct profile_free *f)
{
    return f->freed_ns > f->born_ns ? f->freed_ns - f->born_ns : 0;
}
/** How long before the reading, or the end, of its image it was freed. */
uint64_t who_freed_before_ns(const struct profile *p, const struct profile_free *f);
/** Indices of the frees, the latest first: a new array of p->frees.len, which the caller frees. */
uint32_t *who_latest_frees(const struct profile *p);

#endif
