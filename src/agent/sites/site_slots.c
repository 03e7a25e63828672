/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sites/site_slots.h"

#include "target/vm_reserve.h"

#define PROBES_MOST    64u /* slots to try for one address; must not exceed SITES_SLOTS_LEAST */
#define SLOTS_FOR_EACH 8u

struct sites_slots sites_slots;
const struct sites_slot sites_slot_none;
static uint32_t taken;

void sites_slots_begin(struct sites_slot *empty)
{
    store_relaxed(&taken, 0);
    store_relaxed(&sites_slots.at, empty);
    store_relaxed(&sites_slots.mask, SITES_SLOTS_MASK(SITES_SLOTS_LEAST));
}

/* Finds the slot of the address in the part of the table with this mask, or else an empty slot for the address. *is:
 * the address in the slot; 0: empty. NULL: other addresses have taken all slots that this address could have. */
static struct sites_slot *find_slot(uintptr_t pc, uint64_t mask, uint64_t *is)
{
    for (uint32_t i = 0; i < PROBES_MOST; i++) {
        struct sites_slot *slot = sites_slot_at(pc, mask, i);
        *is = load_acquire(&slot->pc);
        if (!*is || *is == pc)
            return slot;
    }
    return NULL;
}

/* Returns the id that the address had when a smaller part of the table was in use; 0: none. */
static uint32_t id_before(uintptr_t pc, uint64_t mask)
{
    uint64_t is;
    for (uint64_t slots = SITES_SLOTS_LEAST; SITES_SLOTS_MASK(slots) < mask; slots *= 2) {
        struct sites_slot *slot = find_slot(pc, SITES_SLOTS_MASK(slots), &is);
        uint32_t id = slot && is == pc ? load_acquire(&slot->id) : 0;
        if (id)
            return id;
    }
    return 0;
}

static void count_taken(uint64_t mask)
{
    uint64_t slots = mask / sizeof(struct sites_slot) + 1;
    if (__atomic_add_fetch(&taken, 1, __ATOMIC_RELAXED) > slots / SLOTS_FOR_EACH && slots < SITES_SLOTS &&
        vm_reserve_open(load_relaxed(&sites_slots.at), 2 * slots * sizeof(struct sites_slot)))
        __atomic_compare_exchange_n(&sites_slots.mask, &mask, SITES_SLOTS_MASK(2 * slots), false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

struct sites_slot *sites_slots_take(uintptr_t pc)
{
    uint64_t is, mask = load_relaxed(&sites_slots.mask);
    struct sites_slot *slot;
    while ((slot = find_slot(pc, mask, &is)) && is != pc) {
        if (!__atomic_compare_exchange_n(&slot->pc, &is, pc, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            continue; /* another thread has taken the slot, for this address or another one */
        count_taken(mask);
        break;
    }
    uint32_t none = 0, before = slot && !load_acquire(&slot->id) ? id_before(pc, mask) : 0;
    if (before)
        __atomic_compare_exchange_n(&slot->id, &none, before, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return slot;
}

/* Includes the old slots of addresses that have another slot since the table doubled: a thread may have looked up the
 * old slot before, and use it only now. */
void sites_slots_cool(bool (*which)(uint32_t id))
{
    uint64_t slots = load_relaxed(&sites_slots.mask) / sizeof(struct sites_slot) + 1;
    for (uint64_t i = 0; i < slots; i++) {
        struct sites_slot *slot = &sites_slots.at[i];
        if (load_relaxed(&slot->state) && which(load_acquire(&slot->id)))
            store_relaxed(&slot->state, 0);
    }
}
