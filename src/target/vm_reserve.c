/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/vm_reserve.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/sigsafe/syscall.h"
#include "wire/headroom.h"

#define PIECES_MAX         4096u
#define REFUSALS_PER_CHECK 1024u /* a check of the limits takes some system calls */
#define PAGE               4096u
#define LEDGER_LEAST       (16u << 20) /* bytes of address space to leave for the ledger */
#define ARRAY_STEP         (64u << 10)

static struct {
    uintptr_t start;
    uint64_t bytes; /* written last; 0: none, or given back */
} pieces[PIECES_MAX];
static uint32_t n_pieces;
static uint32_t refused_reserve, refused_open; /* refusals since the last success */
static int sealed;
static const struct ledger_control *control; /* NULL: none */

void vm_reserve_obey(const struct ledger_control *page)
{
    if (page != load_relaxed(&control)) /* in a fork child, a store to a page costs a copy of it */
        store_release(&control, page);
}

void vm_reserve_seal(int reasons)
{
    __atomic_fetch_add(&sealed, reasons, __ATOMIC_RELAXED);
}

bool vm_reserve_is_sealed(void)
{
    return load_relaxed(&sealed) != 0;
}

bool vm_reserve_may_call(void)
{
    const struct ledger_control *c = load_acquire(&control);
    return !load_relaxed(&sealed) && !(c && load_relaxed(&c->word) & LEDGER_CONTROL_SEALED) &&
           !sys_call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0);
}

/* Under strict overcommit, the kernel charges memory that becomes writable, and the program could get less memory. */
static bool overcommit_is_strict(void)
{
    static char mode; /* '2': strict; 0: not known yet */
    if (!mode) {
        long fd = sys_call(SYS_openat, AT_FDCWD, "/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
        if (sys_failed(fd) || sys_call(SYS_read, fd, &mode, 1) != 1)
            mode = '0';
        if (!sys_failed(fd))
            sys_call(SYS_close, fd);
    }
    return mode == '2';
}

static bool add_piece(uintptr_t start, uint64_t bytes)
{
    uint32_t n = __atomic_fetch_add(&n_pieces, 1, __ATOMIC_RELAXED);
    if (n >= PIECES_MAX)
        return false;
    pieces[n].start = start;
    store_release(&pieces[n].bytes, bytes);
    return true;
}

/* Maps the memory with PROT_NONE, and calls munlock() before the memory becomes readable: if the program has called
 * mlockall(MCL_FUTURE), the kernel would otherwise back all of this memory. */
static void *map_zeros(uint64_t bytes, bool wiped)
{
    long p = sys_call(SYS_mmap, 0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sys_failed(p))
        return NULL;
    sys_call(SYS_munlock, p, bytes);
    sys_call(SYS_madvise, p, bytes, MADV_DONTDUMP);
    if ((!wiped || !sys_failed(sys_call(SYS_madvise, p, bytes, MADV_WIPEONFORK))) &&
        !sys_failed(sys_call(SYS_mprotect, p, bytes, PROT_READ)))
        return (void *)p;
    sys_call(SYS_munmap, p, bytes);
    return NULL;
}

/* True: the caller is to refuse without a check, because the last check failed. Counts this refusal. After each
 * REFUSALS_PER_CHECK refusals, returns false once, so that the caller checks again. */
static bool refused_lately(uint32_t *refusals)
{
    return load_relaxed(refusals) % REFUSALS_PER_CHECK && __atomic_fetch_add(refusals, 1, __ATOMIC_RELAXED);
}

void *vm_reserve(uint64_t bytes, bool wiped)
{
    if (refused_lately(&refused_reserve))
        return NULL;
    bool may = vm_reserve_may_call() && !overcommit_is_strict() && headroom_in_limits(bytes, 0) &&
               headroom_take_space(bytes, LEDGER_LEAST);
    void *p = may ? map_zeros(bytes, wiped) : NULL;
    if (p && !add_piece((uintptr_t)p, bytes)) {
        sys_call(SYS_munmap, p, bytes);
        p = NULL;
    }
    if (!p) {
        if (may)
            headroom_give_space(bytes);
        __atomic_fetch_add(&refused_reserve, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    store_relaxed(&refused_reserve, 0);
    return p;
}

bool vm_reserve_open(const void *at, uint64_t bytes)
{
    uintptr_t start = (uintptr_t)at & ~(uintptr_t)(PAGE - 1);
    uintptr_t end = ((uintptr_t)at + bytes + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    if (refused_lately(&refused_open))
        return false;
    bool open = vm_reserve_may_call() && headroom_in_limits(0, end - start) &&
                !sys_failed(sys_call(SYS_mprotect, start, end - start, PROT_READ | PROT_WRITE));
    if (open)
        store_relaxed(&refused_open, 0);
    else
        __atomic_fetch_add(&refused_open, 1, __ATOMIC_RELAXED);
    return open;
}

bool vm_array_reach_cold(struct vm_array *a, const void *records, uint32_t number)
{
    uint32_t from = load_acquire(&a->writable), end = number + 1 + ARRAY_STEP / a->record_bytes;
    end = end < a->most ? end : a->most;
    if (number >= end ||
        (from < end && !vm_reserve_open((const char *)records + (uint64_t)from * a->record_bytes,
                                        (uint64_t)(end - from) * a->record_bytes)))
        return false;
    while (from < end &&
           !__atomic_compare_exchange_n(&a->writable, &from, end, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    return true;
}

void vm_reserve_release(void *memory, uint64_t bytes)
{
    for (uint32_t i = 0; i < PIECES_MAX && i < load_relaxed(&n_pieces); i++)
        if (pieces[i].start == (uintptr_t)memory)
            store_relaxed(&pieces[i].bytes, 0);
    headroom_give_space(bytes);
    sys_call(SYS_munmap, memory, bytes);
}

/* For a line of /proc/self/maps, the start of the mapping is looked up: the mapping may cover several pieces, because
 * the kernel merges neighbouring mappings. */
bool vm_reserve_has(uintptr_t address)
{
    for (uint32_t i = 0; i < PIECES_MAX && i < load_relaxed(&n_pieces); i++)
        if (address - pieces[i].start < load_acquire(&pieces[i].bytes))
            return true;
    return false;
}

bool vm_reserve_any(void)
{
    return load_relaxed(&n_pieces) != 0;
}
