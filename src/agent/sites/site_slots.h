/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITE_SLOTS_H
#define AGENT_SITE_SLOTS_H

/*
 * The hash table of return addresses: it has the site of each address.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: nothing. The memory of the table belongs to site_tables.c, which has reserved all of it. Only a part is in use,
 * with eight slots for each address, so that hot calls read few pages. When more than one eighth of the part is taken,
 * the part doubles, and its second half is made writable. If an address then has another slot, its next call takes the
 * cold function, which fills in the new slot.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/compiler.h"

/*
 * A slot belongs to one address for ever; `id` is stored later, with SITES_* flags. The hot function counts if `state`
 * equals the state of the control page, which is never 0. So after a change of the rules each site takes the cold
 * function once. The cold function leaves `state` unchanged if the site has a rule, or must be checked at each call for
 * another reason: the site then never becomes hot.
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
    uint64_t mask; /* in bytes: SITES_SLOTS_MASK() of the slots in use, a power of two */
};
#define SITES_SLOTS_MASK(slots) (((slots)-1ull) * sizeof(struct sites_slot))
extern struct sites_slots sites_slots __attribute__((visibility("hidden")));
extern const struct sites_slot sites_slot_none __attribute__((visibility("hidden")));

/** Starts with the table `empty`, of SITES_SLOTS, which begins on a page and whose first SITES_SLOTS_LEAST slots are
 * writable. */
void sites_slots_begin(struct sites_slot *empty);
/** Returns the slot of the address; a new address takes an empty one. NULL: other addresses have taken all slots that
 * it could have. */
ONE_COPY struct sites_slot *sites_slots_take(uintptr_t pc);
/** Sets `state` to 0 in each slot whose id `which` accepts, so that the hot function does not count there. */
void sites_slots_cool(bool (*which)(uint32_t id));

/* Returns the slot to try for the address as number `probe`, from 0 on. The low three bits of the address do not count.
 * The slots 0 and 1 lie on one cache line. */
static inline struct sites_slot *sites_slot_at(uintptr_t pc, uint64_t mask, uint32_t probe)
{
    return (struct sites_slot *)(((uintptr_t)load_relaxed(&sites_slots.at) + (2 * pc & mask)) ^
                                 probe * sizeof(struct sites_slot));
}

static inline struct sites_slot *sites_slot_first(uintptr_t pc)
{
    return sites_slot_at(pc, load_relaxed(&sites_slots.mask), 0);
}

/** Returns the slot of the address if it is one of the first two; else a slot that belongs to no address and
 * is never hot. */
static inline const struct sites_slot *sites_slot_known(uintptr_t pc)
{
    struct sites_slot *slot = sites_slot_first(pc);
    if (likely(load_relaxed(&slot->pc) == pc))
        return slot;
    slot = (struct sites_slot *)((uintptr_t)slot ^ sizeof(*slot));
    return load_relaxed(&slot->pc) == pc ? slot : &sites_slot_none;
}

#endif
