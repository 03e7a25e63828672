/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/tag_index.h"

#include <dlfcn.h>
#include <stddef.h>

#include "allium/tag.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"
#include "target/vm_reserve.h"
#include "wire/ledger.h"

#define PLACES_LEAST 4096u /* powers of two */
#define PLACES_MOST  65536u
#define PROBES       64u

#define NUMBER_BITS 16 /* the bits of an account number */

static uint64_t *places; /* each slot: upper bits of an identity and an account number; 0: free */
/*
 * `places` has several tables, one after the other, each with twice the slots of the one before. When half of the last
 * table is used, the next one is opened, so a program uses only as many pages as it needs.
 */
static uint32_t size = PLACES_LEAST, taken; /* slots of the last table; used slots of all tables */

bool tag_index_module(const void *at, struct dl_find_object *found)
{
    return !_dl_find_object((void *)(uintptr_t)at, found) && sys_can_read(found->dlfo_map_start) &&
           sys_can_read(at);
}

void tag_index_init(void)
{
    places = vm_reserve((2 * PLACES_MOST - PLACES_LEAST) * sizeof(*places), false);
    if (places && !vm_reserve_open(places, PLACES_LEAST * sizeof(*places)))
        places = NULL;
}

static uint64_t length_of(const char *text, int count)
{
    const char *at = text;
    while (text && count)
        count -= !*at++;
    return (uint64_t)(at - text);
}

/* Returns the address behind `count` consecutive strings at `at`; NULL: they are not all in [start, end). */
static const char *behind(const char *at, int count, const char *start, const char *end)
{
    if (at < start)
        return NULL;
    while (count && at < end)
        count -= !*at++;
    return count ? NULL : at;
}

const char *tag_index_file(const char *texts, const char *start, const char *end)
{
    const char *file = behind(texts, 2, start, end);
    return file && behind(file, 1, start, end) ? file : NULL;
}

uint64_t tag_index_identity(uint64_t key, const char *path, const char *texts)
{
    uint64_t id = ledger_action_key(path, length_of(path, 1), key);
    return ledger_action_key(texts, length_of(texts, 3), id) | 1;
}

/*
 * Returns the slot of an identity, or a free slot for it, in the table that has `slots` slots, and stores its content
 * in *have. NULL: all slots that may hold the identity have other ones.
 */
static uint64_t *find_slot(uint64_t identity, uint32_t slots, uint64_t *have)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        uint64_t *slot = &places[slots - PLACES_LEAST + ((identity >> NUMBER_BITS) + i) % slots];
        *have = load_acquire(slot);
        if (!*have || !((*have ^ identity) >> NUMBER_BITS))
            return slot;
    }
    return NULL;
}

uint32_t tag_index_account(uint64_t identity, uint32_t number)
{
    uint32_t now = load_relaxed(&size);
    uint64_t have, *slot = NULL;
    for (uint32_t slots = now; places && slots >= PLACES_LEAST; slots /= 2) {
        uint64_t *at = find_slot(identity, slots, &have);
        if (at && have)
            return have & ((1u << NUMBER_BITS) - 1);
        slot = slots == now ? at : slot;
    }
    have = 0;
    if (number && slot &&
        __atomic_compare_exchange_n(slot, &have, identity >> NUMBER_BITS << NUMBER_BITS | number, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
        __atomic_add_fetch(&taken, 1, __ATOMIC_RELAXED) > now - PLACES_LEAST / 2 && now < PLACES_MOST &&
        vm_reserve_open(&places[2 * now - PLACES_LEAST], 2 * now * sizeof(*places)))
        __atomic_compare_exchange_n(&size, &now, now * 2, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return 0;
}
