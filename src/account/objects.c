/* SPDX-License-Identifier: BSD-2-Clause */
#include "account/objects.h"

#include "account/reserve.h"
#include "base/sigsafe/atomic.h"

#define TABLE_BYTES (2ull * OBJECTS_HALF * sizeof(uint32_t) + OBJECTS_PAGES * sizeof(uint64_t))

uint32_t *objects_none[OBJECTS_TABLES];
static uint32_t **tables;

/* Makes what `at` points to, once. */
static void *made_once(void *at, uint64_t bytes)
{
    void **where = at, *have = __atomic_load_n(where, __ATOMIC_ACQUIRE);
    if (have)
        return have;
    void *mine = reserve_memory(bytes, true);
    if (mine && !__atomic_compare_exchange_n(where, &have, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        reserve_release(mine, bytes);
        return have;
    }
    return mine;
}

/* The first table is always there once the others may be: NULL has an entry, and a thread asks it whether it is at home. */
uint32_t **objects_tables(void)
{
    uint32_t **all = made_once(&tables, OBJECTS_TABLES * sizeof(*tables));
    return all && made_once(&all[0], TABLE_BYTES) ? all : NULL;
}

/* Where the map has what is known of an address. */
struct place {
    uint32_t *entry;
    uint64_t *
        page; /* bytes of the large object that begins in the page << OBJECTS_GRANULES | where; 0: none does */
};

/* Of one look at the table: if a handler forks, what it interrupted finds the tables of tables empty in the child. */
static bool find(struct place *p, uintptr_t address, bool make)
{
    uint32_t **all = __atomic_load_n(&tables, __ATOMIC_ACQUIRE);
    if (!all || address >> OBJECTS_GIB_SHIFT >= OBJECTS_TABLES)
        return false;
    uint32_t **table = &all[address >> OBJECTS_GIB_SHIFT];
    uint32_t *first = make ? made_once(table, TABLE_BYTES) : __atomic_load_n(table, __ATOMIC_ACQUIRE);
    if (!first)
        return false;
    p->entry = first + OBJECTS_ENTRY_AT(address) + (OBJECTS_IS_ODD(address) ? OBJECTS_HALF : 0);
    p->page = (uint64_t *)(first + 2 * OBJECTS_HALF) + (address >> 12 & (OBJECTS_PAGES - 1));
    return true;
}

static uint64_t granule_of(uintptr_t address)
{
    return address >> 4 & ((1u << OBJECTS_GRANULES) - 1);
}

bool objects_put(uintptr_t address, struct object o)
{
    struct place p;
    uint32_t entry = o.account << OBJECTS_BYTES_BITS;
    if (!find(&p, address, true))
        return false;
    if (o.bytes > OBJECTS_BYTES_INLINE) {
        store_relaxed(p.page, o.bytes << OBJECTS_GRANULES | granule_of(address));
        entry |= OBJECTS_BYTES_BEYOND;
    } else {
        entry |= (uint32_t)o.bytes;
    }
    store_release(p.entry, entry);
    return true;
}

bool objects_take(uintptr_t address, struct object *o)
{
    struct place p;
    uint32_t entry = find(&p, address, false) ? load_acquire(p.entry) : 0;
    *o = (struct object){entry >> OBJECTS_BYTES_BITS, entry & OBJECTS_BYTES_BEYOND};
    if (!o->account)
        return false;
    if (o->bytes == OBJECTS_BYTES_BEYOND) {
        o->bytes = load_relaxed(p.page) >> OBJECTS_GRANULES;
        store_relaxed(p.page, 0);
    }
    store_release(p.entry, 0);
    return true;
}

bool objects_take_from_page(uintptr_t address, struct object *o)
{
    struct place p;
    uint64_t page = find(&p, address, false) ? load_relaxed(p.page) : 0;
    uintptr_t other = (address & ~(uintptr_t)0xfff) | (page & ((1u << OBJECTS_GRANULES) - 1)) << 4;
    return page && (objects_take(other, o) || objects_take(other | 8, o));
}
