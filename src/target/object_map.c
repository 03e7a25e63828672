/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/object_map.h"

#include <sys/mman.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"
#include "target/vm_reserve.h"

#define TABLE_BYTES (2ull * OBJECTS_HALF * sizeof(uint32_t) + OBJECTS_PAGES * sizeof(uint64_t))

#define EPOCH_FIRST 2u
#define EPOCHS      2u /* after so many a table that was wiped is used again */
#define MADE_MOST   256u

#define AHEAD_BYTES (1ull << 20) /* of addresses */
#define AHEAD_STEP  (AHEAD_BYTES / 4)
#define STEPS_KNOWN 64u

uintptr_t object_map_none[OBJECTS_TABLES];
static uintptr_t *tables; /* and behind them, wiped as they are, this process's epoch */

/*
 * All tables, and of which process: a fork child counts one epoch more than its parent. It finds its parent's tables wiped and
 * nothing that leads to them. They are its own children's: in itself what a handler interrupted that forked may yet write to one.
 */
static struct {
    uint32_t *table;
    uint32_t epoch;
} made[MADE_MOST + 1]; /* the last is all that came later, which serve no child */
static uint32_t n_made, epoch = EPOCH_FIRST - 1;

static uint32_t epoch_of(uintptr_t *all)
{
    uint32_t *own = (uint32_t *)&all[OBJECTS_TABLES], none = 0, next = load_relaxed(&epoch) + 1;
    if (unlikely(!load_relaxed(own)) &&
        __atomic_compare_exchange_n(own, &none, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        store_relaxed(&epoch, next);
    return load_relaxed(own);
}

/* One that is a grandparent's, or an older one's; NULL: there is none. */
static uint32_t *take_old(uint32_t now, uint32_t *number)
{
    for (uint32_t i = 0; i < MADE_MOST && i < load_acquire(&n_made); i++) {
        uint32_t of = load_relaxed(&made[i].epoch), *table = load_acquire(&made[i].table);
        if (table && of + EPOCHS <= now &&
            __atomic_compare_exchange_n(&made[i].epoch, &of, now, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            *number = i;
            return table;
        }
    }
    return NULL;
}

static uint32_t *make_new(uint32_t now, uint32_t *number)
{
    uint32_t *table = vm_reserve(TABLE_BYTES, true);
    if (!table)
        return NULL;
    *number = __atomic_fetch_add(&n_made, 1, __ATOMIC_RELAXED);
    *number = *number < MADE_MOST ? *number : MADE_MOST;
    store_relaxed(&made[*number].epoch, now);
    store_release(&made[*number].table, table);
    return table;
}

/* That of a GiB, from now on if not before, less its bias. Of two that come at once the later one's table is the next one's. */
static uintptr_t table_at(uintptr_t *all, uintptr_t address)
{
    uintptr_t *where = &all[address >> OBJECTS_GIB_SHIFT], have = __atomic_load_n(where, __ATOMIC_ACQUIRE);
    if (likely(have))
        return have;
    uint32_t number, now = epoch_of(all), *table = take_old(now, &number);
    if (!table)
        table = make_new(now, &number);
    if (!table)
        return __atomic_load_n(where, __ATOMIC_ACQUIRE);
    uintptr_t mine = (uintptr_t)table - OBJECTS_BIAS(address);
    if (__atomic_compare_exchange_n(where, &have, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return mine;
    store_relaxed(&made[number].epoch, now - EPOCHS);
    return have;
}

static uintptr_t *all_tables(void)
{
    uintptr_t *have = __atomic_load_n(&tables, __ATOMIC_ACQUIRE);
    if (likely(have != NULL))
        return have;
    uintptr_t *mine = vm_reserve((OBJECTS_TABLES + 1) * sizeof(*mine), true);
    if (!mine)
        return __atomic_load_n(&tables, __ATOMIC_ACQUIRE);
    if (__atomic_compare_exchange_n(&tables, &have, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return mine;
    vm_reserve_release(mine, (OBJECTS_TABLES + 1) * sizeof(*mine));
    return have;
}

/* The first table is always there once the others may be: NULL has an entry, and a thread asks it whether it is at home. */
uintptr_t *object_map_tables(void)
{
    uintptr_t *all = all_tables();
    return all && table_at(all, 0) ? all : NULL;
}

void object_map_begin_anew(void)
{
    uintptr_t *all = __atomic_load_n(&tables, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; all && all[OBJECTS_TABLES] && i < OBJECTS_TABLES; i++)
        if (all[i])
            all[i] = 0;
    if (all && all[OBJECTS_TABLES])
        all[OBJECTS_TABLES] = 0;
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
    uintptr_t *all = __atomic_load_n(&tables, __ATOMIC_ACQUIRE), table;
    if (!all || address >> OBJECTS_GIB_SHIFT >= OBJECTS_TABLES)
        return false;
    table =
        make ? table_at(all, address) : __atomic_load_n(&all[address >> OBJECTS_GIB_SHIFT], __ATOMIC_ACQUIRE);
    if (!table)
        return false;
    uint32_t *first = (uint32_t *)(table + OBJECTS_BIAS(address));
    p->entry = first + OBJECTS_ENTRY_AT(address) + (OBJECTS_IS_ODD(address) ? OBJECTS_HALF : 0);
    p->page = (uint64_t *)(first + 2 * OBJECTS_HALF) + (address >> 12 & (OBJECTS_PAGES - 1));
    return true;
}

/* A hole is left where memory is mapped next: what is reserved for it lies elsewhere. */
void object_map_take_room(uint64_t bytes)
{
    struct place p;
    long hole = sys_call(SYS_mmap, 0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sys_failed(hole))
        return;
    for (uintptr_t at = (uintptr_t)hole; at < (uintptr_t)hole + bytes; at += 1ull << OBJECTS_GIB_SHIFT)
        find(&p, at, true);
    find(&p, (uintptr_t)hole + bytes - 1, true);
    sys_call(SYS_munmap, hole, bytes);
}

void object_map_expect_more(uintptr_t address)
{
    static uintptr_t known[STEPS_KNOWN]; /* at which step it was looked last */
    uintptr_t step = address / AHEAD_STEP, *last = &known[step % STEPS_KNOWN];
    struct place p;
    if (load_relaxed(last) == step)
        return;
    store_relaxed(last, step);
    if (!vm_reserve_may_call() || !find(&p, address, false))
        return;
    uintptr_t page = (uintptr_t)p.entry & ~4095ull;
    sys_call(SYS_madvise, page, AHEAD_BYTES / 16 * sizeof(*p.entry), MADV_POPULATE_WRITE); /* Linux 5.14 */
}

static uint64_t granule_of(uintptr_t address)
{
    return address >> 4 & ((1u << OBJECTS_GRANULES) - 1);
}

/* Is the page's word of the object that begins there? It is of large ones alone: those of 0 bytes have none. */
static bool is_of(uint64_t page, uintptr_t address)
{
    return (page & ((1u << OBJECTS_GRANULES) - 1)) == granule_of(address);
}

bool object_map_put(uintptr_t address, struct object o)
{
    struct place p;
    uint32_t entry = o.account << OBJECTS_BYTES_BITS;
    if (!find(&p, address, true))
        return false;
    if (o.bytes > OBJECTS_BYTES_INLINE) {
        store_relaxed(p.page, o.bytes << OBJECTS_GRANULES | granule_of(address));
        store_release(p.entry, entry);
    } else {
        store_release(p.entry, entry | (uint32_t)o.bytes);
    }
    return true;
}

bool object_map_has(uintptr_t address)
{
    struct place p;
    return find(&p, address, false) && load_relaxed(p.entry);
}

bool object_map_take(uintptr_t address, struct object *o)
{
    struct place p;
    uint32_t entry = find(&p, address, false) ? load_acquire(p.entry) : 0;
    *o = (struct object){entry >> OBJECTS_BYTES_BITS, entry & OBJECTS_BYTES_INLINE};
    if (!o->account)
        return false;
    uint64_t page = o->bytes ? 0 : load_relaxed(p.page);
    if (page && is_of(page, address)) {
        o->bytes = page >> OBJECTS_GRANULES;
        store_relaxed(p.page, 0);
    }
    store_release(p.entry, 0);
    return true;
}

bool object_map_take_from_page(uintptr_t address, struct object *o)
{
    struct place p;
    uint64_t page = find(&p, address, false) ? load_relaxed(p.page) : 0;
    uintptr_t other = (address & ~(uintptr_t)0xfff) | (page & ((1u << OBJECTS_GRANULES) - 1)) << 4;
    return page && (object_map_take(other, o) || object_map_take(other | 8, o));
}
