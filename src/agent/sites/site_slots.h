/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITE_SLOTS_H
#define AGENT_SITE_SLOTS_H

/*
 * The table of return addresses: which site an address is.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: nothing: the memory of the table belongs to sites.c, which has reserved all of it. Only a part of it is used,
 * with eight slots for each address, so that hot calls read few pages. When more than an eighth of the part is taken it
 * doubles, and its second half is made writable. Addresses whose slot lies elsewhere after that come to the cold half
 * once, which enters them again.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/compiler.h"

/*
 * It is an address's for good; `id` comes later, with SITES_*. The hot half counts where `state` is the control page's,
 * which is never 0: a change there, of what is asked of sites, sends each to the cold half once, and those of which
 * something is asked each time, as those that have to be looked at closer anyway.
 */
struct sites_slot {
    uint64_t pc;
    uint32_t id;
    int32_t state;
};
#define SITES_SLOTS       (1u << 18)
#define SITES_SLOTS_LEAST (1u << 12)

struct sites_slots {
    struct sites_slot *at;
    uint64_t mask; /* of bytes: SITES_SLOTS_MASK() of how many are looked at, a power of two */
};
#define SITES_SLOTS_MASK(slots) (((slots)-1ull) * sizeof(struct sites_slot))
extern struct sites_slots sites_slots __attribute__((visibility("hidden")));
extern const struct sites_slot sites_slot_none __attribute__((visibility("hidden")));

/**
 * Begins with an empty table of SITES_SLOTS, at the beginning of a page, of which the first SITES_SLOTS_LEAST are
 * writable.
 */
void sites_slots_begin(struct sites_slot *empty);
/** The address's, taken if it is new; NULL: too many others are where it would be. */
ONE_COPY struct sites_slot *sites_slots_take(uintptr_t pc);
/** The hot half counts at none any more of which `which` says so by its id, until `state` is set again. */
void sites_slots_cool(bool (*which)(uint32_t id));

/* By the address without its lower three bits. The first two lie on one cache line. */
static inline struct sites_slot *sites_slot_at(uintptr_t pc, uint64_t mask, uint32_t next_but)
{
    return (struct sites_slot *)(((uintptr_t)load_relaxed(&sites_slots.at) + (2 * pc & mask)) ^
                                 next_but * sizeof(struct sites_slot));
}

static inline struct sites_slot *sites_slot_first(uintptr_t pc)
{
    return sites_slot_at(pc, load_relaxed(&sites_slots.mask), 0);
}

/** The address's, if it is one of the first two; else one that is nobody's, and never hot. */
static inline const struct sites_slot *sites_slot_known(uintptr_t pc)
{
    struct sites_slot *slot = sites_slot_first(pc);
    if (likely(load_relaxed(&slot->pc) == pc))
        return slot;
    slot = (struct sites_slot *)((uintptr_t)slot ^ sizeof(*slot));
    return load_relaxed(&slot->pc) == pc ? slot : &sites_slot_none;
}

#endif
