/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/objects.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "allium/tag.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/sys.h"

#define TABLES      (1u << 17) /* GiB of user addresses */
#define HALF        (1u << 26) /* entries of multiples of 16 in a GiB */
#define PAGES       (1u << 18) /* in a GiB */
#define TABLE_BYTES (2ull * HALF * sizeof(uint32_t) + PAGES * sizeof(uint64_t))
#define GRANULES    8 /* bits of a page's word that say where in it the object begins, in multiples of 16 */

uint32_t *objects_none[TABLES];
static uint32_t **tables;

/*
 * A table is address space that is hardly touched. Where address space is limited, or counted as if it were memory (strict
 * overcommit), it would be the program's; and after seccomp a system call may be the last.
 */
static bool may_reserve(uint64_t bytes)
{
    static char strict; /* '2': so it is; 0: not known yet */
    struct rlimit as;
    if (sys_call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0))
        return false;
    if (!strict) {
        long fd = sys_call(SYS_openat, AT_FDCWD, "/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
        if (sys_failed(fd) || sys_call(SYS_read, fd, &strict, 1) != 1)
            strict = '0';
        if (!sys_failed(fd))
            sys_call(SYS_close, fd);
    }
    return strict != '2' && !sys_call(SYS_getrlimit, RLIMIT_AS, &as) &&
           (as.rlim_cur == RLIM_INFINITY || bytes <= as.rlim_cur / 8);
}

/* Not accessible at first, or mlockall(2) in the program would back all of it. */
static void *wiped_memory(uint64_t bytes)
{
    if (!may_reserve(bytes))
        return NULL;
    long p = sys_call(SYS_mmap, 0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sys_failed(p))
        return NULL;
    sys_call(SYS_munlock, p, bytes);
    sys_call(SYS_madvise, p, bytes, MADV_DONTDUMP);
    if (!sys_failed(sys_call(SYS_madvise, p, bytes, MADV_WIPEONFORK)) &&
        !sys_failed(sys_call(SYS_mprotect, p, bytes, PROT_READ | PROT_WRITE)))
        return (void *)p;
    sys_call(SYS_munmap, p, bytes);
    return NULL;
}

/* Makes what `at` points to, once. */
static void *made_once(void *at, uint64_t bytes)
{
    void **where = at, *have = __atomic_load_n(where, __ATOMIC_ACQUIRE);
    if (have)
        return have;
    void *mine = wiped_memory(bytes);
    if (mine && !__atomic_compare_exchange_n(where, &have, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        sys_call(SYS_munmap, mine, bytes);
        return have;
    }
    return mine;
}

/* The first table is always there once the others may be: NULL has an entry, and a thread asks it whether it is at home. */
uint32_t **objects_tables(void)
{
    uint32_t **all = made_once(&tables, TABLES * sizeof(*tables));
    return all && made_once(&all[0], TABLE_BYTES) ? all : NULL;
}

static uint32_t *entry_at(uintptr_t address, bool make)
{
    uint32_t **all = __atomic_load_n(&tables, __ATOMIC_ACQUIRE);
    if (!all || address >> ALLIUM_GIB_SHIFT >= TABLES)
        return NULL;
    uint32_t **table = &all[address >> ALLIUM_GIB_SHIFT];
    uint32_t *first = make ? made_once(table, TABLE_BYTES) : __atomic_load_n(table, __ATOMIC_ACQUIRE);
    return first ? first + ALLIUM_ENTRY_AT(address) + (ALLIUM_IS_ODD(address) ? HALF : 0) : NULL;
}

/* Bytes of the large object that begins in the page << GRANULES | where; 0: none does. Its entry is there. */
static uint64_t *page_at(uintptr_t address)
{
    uint32_t *table = tables[address >> ALLIUM_GIB_SHIFT];
    return (uint64_t *)(table + 2 * HALF) + (address >> 12 & (PAGES - 1));
}

static uint64_t granule_of(uintptr_t address)
{
    return address >> 4 & ((1u << GRANULES) - 1);
}

bool objects_put(uintptr_t address, struct object o)
{
    uint32_t *at = entry_at(address, true), entry = o.account << ALLIUM_BYTES_BITS;
    if (!at)
        return false;
    if (o.bytes > ALLIUM_BYTES_INLINE) {
        store_relaxed(page_at(address), o.bytes << GRANULES | granule_of(address));
        entry |= ALLIUM_BYTES_BEYOND;
    } else {
        entry |= (uint32_t)o.bytes;
    }
    store_release(at, entry);
    return true;
}

bool objects_take(uintptr_t address, struct object *o)
{
    uint32_t *at = entry_at(address, false), entry = at ? load_acquire(at) : 0;
    *o = (struct object){entry >> ALLIUM_BYTES_BITS, entry & ALLIUM_BYTES_BEYOND};
    if (!o->account)
        return false;
    if (o->bytes == ALLIUM_BYTES_BEYOND) {
        o->bytes = load_relaxed(page_at(address)) >> GRANULES;
        store_relaxed(page_at(address), 0);
    }
    store_release(at, 0);
    return true;
}

bool objects_take_from_page(uintptr_t address, struct object *o)
{
    uint64_t page = entry_at(address, false) ? load_relaxed(page_at(address)) : 0;
    uintptr_t other = (address & ~(uintptr_t)0xfff) | (page & ((1u << GRANULES) - 1)) << 4;
    return page && (objects_take(other, o) || objects_take(other | 8, o));
}
