/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ADDRESS_INFO_H
#define MODEL_ADDRESS_INFO_H

/*
 * What a profile knows about one address: the sampled blocks, live or freed recently, that contain it, or, if
 * there are none, the nearest blocks; and how complete the knowledge of frees is.
 *
 * Runs in: the tool. Threads: pure functions of a profile, which must be valid and outlive the answer.
 * Owns: its lists, until address_info_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/profile/profile.h"

#define ADDRESS_INFO_NEAR_BYTES 64 /* largest distance of a block that an overrun is assumed to reach */

enum address_info_place {
    ADDRESS_INFO_INSIDE, /* inside the requested bytes, or the first byte of a block of 0 bytes */
    ADDRESS_INFO_SLACK,  /* behind the requested bytes, in the slack that the allocator added */
    ADDRESS_INFO_BEFORE, /* at most ADDRESS_INFO_NEAR_BYTES before the first byte */
    ADDRESS_INFO_BEHIND, /* less than ADDRESS_INFO_NEAR_BYTES behind the last byte */
};

struct address_info_block {
    bool live;
    uint32_t index; /* in the profile's samples if live, else in its frees */
    enum address_info_place place;
    /* INSIDE: from the beginning of the block; BEFORE: up to its beginning; else: from the end of the
     * requested bytes */
    uint64_t bytes;
};

struct address_info {
    uint64_t address;
    /* The blocks that contain the address. A block extends over the requested bytes and, if live, over its
     * slack. Live blocks come first, then freed blocks, the latest first. */
    struct VEC(struct address_info_block) holding;
    /* Only if no block contains the address: for each image the nearest live block and the nearest freed
     * block on either side; of freed blocks equally near, the latest. Live blocks first, then by distance. */
    struct VEC(struct address_info_block) near;
};

void address_info_find(struct address_info *w, const struct profile *p, uint64_t address);
void address_info_release(struct address_info *w);

/** The number of frees of sampled blocks, and how many of them are still known. */
struct address_info_frees {
    uint64_t freed;      /* all frees; at least `remembered` */
    uint64_t remembered; /* frees in the profile */
    /* how long before the reading, or the end of its image, the oldest of these happened */
    uint64_t reach_ns;
};
struct address_info_frees address_info_frees_of(const struct profile *p);

/**
 * Returns the probability that a block of this size is sampled: 1 - exp(-size / period), and 1 at period 1. 0
 * bytes count as 1.
 */
double address_info_chance(uint64_t size_bytes, uint64_t period_bytes);
/** Returns how long a freed block lived; 0 if the clocks disagree. */
static inline uint64_t address_info_lifetime_ns(const struct profile_free *f)
{
    return f->freed_ns > f->born_ns ? f->freed_ns - f->born_ns : 0;
}
/** Returns how long before the reading, or the end of its image, the block was freed. */
uint64_t address_info_freed_before_ns(const struct profile *p, const struct profile_free *f);
/**
 * Returns the indices of the frees, the latest first: a new array of p->frees.len, which the caller frees.
 */
uint32_t *address_info_latest_frees(const struct profile *p);

#endif
