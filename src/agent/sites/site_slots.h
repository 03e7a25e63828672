/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITE_SLOTS_H
#define AGENT_SITE_SLOTS_H

/*
 * The hash table of return addresses: it has the site of each address.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: nothing. The memory of the table belongs to site_tables.c, which has reserved all of it. Only the first part of
 * the table is in use, so that hot calls read few pages. When more than one eighth of the slots of this part are taken,
 * the part doubles, if the new half can be made writable. If an address then has another slot, the next call with this
 * return address takes the cold function, which fills in the new slot.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/compiler.h"

/*
 * A slot belongs to one address until the process ends. `id` is stored after `pc`, with SITES_WRAPPER and SITES_STAYS;
 * 0: none yet. The slot is hot, which means that the hot functions count there, while `state` equals the state of the
 * control page. That state increases with each change of the rules, so each site then takes the cold function once. The
 * cold function does not update `state` if a rule requests the stacks of the site, if the site lies in a wrapper or
 * outside of known modules, or if its module may be unloaded unnoticed: each call of such a site takes the cold
 * function.
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
    uint64_t mask; /* SITES_SLOTS_MASK(n); n: number of slots in use, a power of two */
};
#define SITES_SLOTS_MASK(slots) (((slots)-1ull) * sizeof(struct sites_slot))
extern struct sites_slots sites_slots __attribute__((visibility("hidden")));
extern const struct sites_slot sites_slot_none __attribute__((visibility("hidden")));

/** Switches to the table `empty`: SITES_SLOTS slots of zeros, of which the first begins a page, and the first
 * SITES_SLOTS_LEAST are writable. */
void sites_slots_begin(struct sites_slot *empty);
/** Returns the slot of the address. If the address has none, takes an empty slot, and stores in it the id that the
 * address had before the table doubled, if any. NULL: other addresses have taken all slots that this address could
 * have. */
ONE_COPY struct sites_slot *sites_slots_take(uintptr_t pc);
/** Sets `state` to 0 in each slot whose id `which` accepts, so that the hot functions do not count there. */
void sites_slots_cool(bool (*which)(uint32_t id));

/* Returns the slot to try for the address at probe number `probe`, from 0 on. The slot does not depend on the low three
 * bits of the address. The slots of probes 0 and 1 lie on one cache line. */
static inline struct sites_slot *sites_slot_at(uintptr_t pc, uint64_t mask, uint32_t probe)
{
    return (struct sites_slot *)(((uintptr_t)load_relaxed(&sites_slots.at) + (2 * pc & mask)) ^
                                 probe * sizeof(struct sites_slot));
}

static inline struct sites_slot *sites_slot_first(uintptr_t pc)
{
    return sites_slot_at(pc, load_relaxed(&sites_slots.mask), 0);
}

/** Returns the slot of the address if probe 0 or 1 finds it; else &sites_slot_none, which belongs to no address and is
 * never hot. */
static inline const struct sites_slot *sites_slot_known(uintptr_t pc)
{
    struct sites_slot *slot = sites_slot_first(pc);
    if (likely(load_relaxed(&slot->pc) == pc))
        return slot;
    slot = (struct sites_slot *)((uintptr_t)slot ^ sizeof(*slot));
    return load_relaxed(&slot->pc) == pc ? slot : &sites_slot_none;
}

#endif
