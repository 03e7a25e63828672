/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/ledger_grow.h"

#include <stddef.h>
#include <sys/mman.h>

#include "base/sigsafe/syscall.h"
#include "wire/headroom.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define GROW_MIN_BYTES     LEDGER_PAGE_BYTES
#define GROW_MAX_BYTES     (32u << 10) /* delays one sample by some 20 microseconds */
#define LEASE_BYTES        (1u << 20)
#define REFUSALS_PER_CHECK 1024
#define ROOM_SHARE         16u /* ledger_take_room() backs at most 1/ROOM_SHARE of the free memory */

long ledger_back(char *from, uint64_t bytes)
{
    long bad = sys_call(SYS_mprotect, from, bytes, PROT_READ | PROT_WRITE);
    return bad ? bad : sys_call(SYS_madvise, from, bytes, MADV_POPULATE_WRITE);
}

bool ledger_refuse(struct ledger *l, enum ledger_full why)
{
    if (!load_relaxed(&l->header->full))
        store_relaxed(&l->header->full, why);
    if (why > LEDGER_FULL_LIMIT)
        store_relaxed(&l->unchecked, 1);
    atomic_add64(&l->header->losses[LEDGER_LOST_GROWTH], 1);
    return false;
}

/* True: refuse without a check (system calls), because the last check failed. Of REFUSALS_PER_CHECK requests, one is
 * checked. The caller passes LEDGER_FULL_LIMIT to ledger_refuse(), which keeps the reason of the failed check. */
static bool refused_lately(struct ledger *l)
{
    uint32_t unchecked = load_relaxed(&l->unchecked);
    if (unchecked)
        store_relaxed(&l->unchecked, (unchecked + 1) % REFUSALS_PER_CHECK);
    return unchecked;
}

/* l->control is read only if there is a ledger: else it may be NULL. */
bool ledger_may_call(struct ledger *l)
{
    bool sealed_by_tool = l->header && load_relaxed(&l->control->word) & LEDGER_CONTROL_SEALED;
    return !sealed_by_tool && headroom_may_call(&l->sealed);
}

/* Returns why file system or cgroups forbid growth by `bytes`; checks them once for each LEASE_BYTES of growth. */
static enum ledger_full check_surroundings(struct ledger *l, uint64_t bytes)
{
    uint64_t approved = load_relaxed(&l->approved_bytes);
    if (approved >= bytes) {
        store_relaxed(&l->approved_bytes, approved - bytes);
        return LEDGER_NOT_FULL;
    }
    uint64_t lease = bytes > LEASE_BYTES ? bytes : LEASE_BYTES;
    enum ledger_full full = headroom_check(l->dir, load_relaxed(&l->header->ready_bytes), lease);
    /* A small tmpfs (1 MiB in a container) never has room for LEASE_BYTES: on it, each growth is checked. */
    if (full == LEDGER_FULL_FILESYSTEM && lease > bytes) {
        lease = bytes;
        full = headroom_check(l->dir, load_relaxed(&l->header->ready_bytes), lease);
    }
    if (!full)
        store_relaxed(&l->approved_bytes, lease - bytes);
    return full;
}

/* Checks RLIMIT_AS and RLIMIT_DATA, and takes the bytes by headroom_take_space(). False: there is too little room. */
static bool take_from_limits(uint64_t bytes)
{
    return headroom_in_limits(bytes, bytes) && headroom_take_space(bytes, 0);
}

/* Returns memory of the pool; NULL: there is no pool, or it has less than `bytes` left. */
static void *take_from_pool(struct ledger *l, uint64_t bytes)
{
    char *pool = load_acquire(&l->pool);
    uint64_t used = load_relaxed(&l->pool_used);
    while (pool && used + bytes <= l->pool_bytes) {
        if (atomic_swap_if64(&l->pool_used, used, used + ledger_page_up(bytes)))
            return pool + used;
        used = load_relaxed(&l->pool_used);
    }
    return NULL;
}

void *ledger_private(struct ledger *l, uint64_t bytes)
{
    void *pooled = take_from_pool(l, bytes);
    if (pooled)
        return pooled;
    enum ledger_full full = ledger_may_call(l) ? LEDGER_NOT_FULL : LEDGER_FULL_SECCOMP;
    if (l->header && !full)
        full = refused_lately(l) ? LEDGER_FULL_LIMIT : check_surroundings(l, bytes);
    if (!full)
        full = take_from_limits(bytes) ? LEDGER_NOT_FULL : LEDGER_FULL_OWN_LIMIT;
    if (!full) {
        long p = sys_call(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
                              (bytes <= LEDGER_PAGE_BYTES ? MAP_POPULATE : 0),
                          -1, 0);
        if (!sys_failed(p))
            return (void *)p;
        headroom_give_space(bytes);
        full = LEDGER_FULL_REFUSED;
    }
    if (l->header)
        ledger_refuse(l, full);
    return NULL;
}

void ledger_give_back(struct ledger *l, void *memory, uint64_t bytes)
{
    if (l->pool && (uintptr_t)memory - (uintptr_t)l->pool < l->pool_bytes)
        return;
    headroom_give_space(bytes);
    sys_call(SYS_munmap, memory, bytes);
}

void ledger_empty_private(struct ledger *l, void *memory, uint64_t bytes)
{
    if (ledger_may_call(l))
        sys_call(SYS_madvise, memory, bytes, MADV_DONTNEED);
}

/* Backs `bytes` behind the first `ready` of a region; if several threads do so, one counts them. 0 or -errno. */
static long extend(struct ledger *l, enum ledger_table table, uint64_t ready, uint64_t bytes)
{
    long bad = ledger_back(l->regions[table] + ready, bytes);
    if (!bad && atomic_swap_if64(&l->header->regions[table].ready_bytes, ready, ready + bytes))
        atomic_add64(&l->header->ready_bytes, bytes);
    return bad;
}

bool ledger_grow_cold(struct ledger *l, enum ledger_table table, uint64_t end_bytes)
{
    struct ledger_header *h = l->header;
    struct ledger_region *r = &h->regions[table];
    for (;;) {
        uint64_t ready = load_acquire(&r->ready_bytes);
        if (end_bytes <= ready)
            return true;
        uint64_t chunk = ready < GROW_MIN_BYTES   ? GROW_MIN_BYTES
                         : ready > GROW_MAX_BYTES ? GROW_MAX_BYTES
                                                  : ready;
        if (ready + chunk < end_bytes)
            chunk = ledger_page_up(end_bytes - ready);
        if (ready + chunk > r->limit_bytes)
            chunk = r->limit_bytes - ready;
        if (ready + chunk < end_bytes || load_relaxed(&h->ready_bytes) + chunk > h->limit_bytes ||
            refused_lately(l))
            return ledger_refuse(l, LEDGER_FULL_LIMIT);
        if (!ledger_may_call(l))
            return ledger_refuse(l, LEDGER_FULL_SECCOMP);
        enum ledger_full full = check_surroundings(l, chunk);
        if (full)
            return ledger_refuse(l, full);
        if (extend(l, table, ready, chunk))
            return ledger_refuse(l, LEDGER_FULL_REFUSED);
    }
}

/* Returns how many of the first `end` bytes of the table are not backed yet, rounded up to whole pages. */
static uint64_t missing_bytes(const struct ledger *l, int table, uint64_t end)
{
    const struct ledger_region *r = &l->header->regions[table];
    uint64_t ready = load_acquire(&r->ready_bytes),
             most = end < r->limit_bytes ? ledger_page_up(end) : r->limit_bytes;
    return most > ready ? most - ready : 0;
}

/* Maps the pool so that the kernel backs no page before its first use, even after mlockall(). NULL: refused. */
static char *map_pool(uint64_t bytes)
{
    long p = sys_call(SYS_mmap, 0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sys_failed(p))
        return NULL;
    sys_call(SYS_munlock, p, bytes);
    if (!sys_failed(sys_call(SYS_mprotect, p, bytes, PROT_READ | PROT_WRITE)))
        return (char *)p;
    sys_call(SYS_munmap, p, bytes);
    return NULL;
}

bool ledger_take_room(struct ledger *l, const uint32_t ends[static LEDGER_TABLES], uint64_t pool_bytes)
{
    uint64_t bytes = 0, held = load_relaxed(&l->header->ready_bytes);
    for (int t = 0; t < LEDGER_TABLES; t++)
        bytes += missing_bytes(l, t, ends[t]);
    if (l->pool || held + bytes > l->header->limit_bytes / 8 || !ledger_may_call(l) ||
        headroom_check(l->dir, held, ROOM_SHARE * bytes) || !take_from_limits(pool_bytes))
        return false;
    char *pool = map_pool(pool_bytes);
    if (!pool) {
        headroom_give_space(pool_bytes);
        return false;
    }
    l->pool_bytes = pool_bytes;
    l->pool_used = 0;
    store_release(&l->pool, pool);
    for (int t = 0; t < LEDGER_TABLES; t++) {
        uint64_t more = missing_bytes(l, t, ends[t]);
        if (more && extend(l, (enum ledger_table)t, load_relaxed(&l->header->regions[t].ready_bytes), more))
            return false;
    }
    return true;
}

uint32_t ledger_append(struct ledger *l, enum ledger_table table, uint32_t count)
{
    struct ledger_region *r = &l->header->regions[table];
    /* Checked before `used` is increased, so that `used` of a full table does not grow without end. */
    if ((load_relaxed(&r->used) + count) * r->record_bytes > r->limit_bytes) {
        if (table != LEDGER_THREADS) /* not counted as a loss: further threads share the record "other" */
            ledger_refuse(l, LEDGER_FULL_LIMIT);
        return LEDGER_NONE;
    }
    uint64_t index = atomic_fetch_add64(&r->used, count);
    if (index + count < LEDGER_NONE && ledger_reach(l, table, (index + count) * r->record_bytes))
        return (uint32_t)index;
    /* Takes the records back, unless another thread has appended more, so that later growth need not back them. */
    atomic_swap_if64(&r->used, index + count, index);
    return LEDGER_NONE;
}
