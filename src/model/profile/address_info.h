/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ADDRESS_INFO_H
#define MODEL_ADDRESS_INFO_H

/*
 * What a profile knows of one address: the sampled blocks, live or freed lately, that it lies in; where there is none,
 * those that it lies close to. And how much is known of frees at all.
 *
 * Runs in: the tool. Threads: pure functions of a profile, which must be valid and outlive the answer.
 * Owns: its lists, until address_info_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/profile/profile.h"

#define ADDRESS_INFO_NEAR_BYTES 64 /* a block this far away may still be what was overrun */

enum address_info_place {
    ADDRESS_INFO_INSIDE, /* of what was asked for; the first byte of a block of none is inside, too */
    ADDRESS_INFO_SLACK,  /* past its end, in what the allocator gave beyond it */
    ADDRESS_INFO_BEFORE, /* at most ADDRESS_INFO_NEAR_BYTES before its first byte */
    ADDRESS_INFO_BEHIND, /* fewer than that past the last byte it has */
};

struct address_info_block {
    bool live;
    uint32_t index; /* in the profile's samples if live, else in its frees */
    enum address_info_place place;
    uint64_t bytes; /* INSIDE: from its beginning; BEFORE: up to there; else: from its end, as asked for */
};

struct address_info {
    uint64_t address;
    /* The block's extent is what was asked for and, of a live one, what the allocator gave beyond. Live ones come
     * first, then the freed ones, the latest first. */
    struct VEC(struct address_info_block) holding;
    /* Only where none holds it: of each image the nearest live block and the nearest freed one on either side, the
     * latest of equals. Live ones first, then by distance. */
    struct VEC(struct address_info_block) near;
};

void address_info_find(struct address_info *w, const struct profile *p, uint64_t address);
void address_info_release(struct address_info *w);

/** How many frees of sampled blocks there were, and what is left of them. */
struct address_info_frees {
    uint64_t freed;      /* in all; at least `remembered` */
    uint64_t remembered; /* in the profile */
    uint64_t reach_ns;   /* the oldest of these, before the reading or end of its image */
};
struct address_info_frees address_info_frees_of(const struct profile *p);

/**
 * The probability that a block of this size is sampled: 1 - exp(-size / period); 1 at period 1. No bytes count as one.
 */
double address_info_chance(uint64_t size_bytes, uint64_t period_bytes);
/** How long a freed block had lived; 0 where clocks disagree. */
static inline uint64_t address_info_lifetime_ns(const struct profile_free *f)
{
    return f->freed_ns > f->born_ns ? f->freed_ns - f->born_ns : 0;
}
/** How long before the reading, or the end, of its image it was freed. */
uint64_t address_info_freed_before_ns(const struct profile *p, const struct profile_free *f);
/** Indices of the frees, the latest first: a new array of p->frees.len, which the caller frees. */
uint32_t *address_info_latest_frees(const struct profile *p);

#endif
