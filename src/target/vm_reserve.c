/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/vm_reserve.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"

#define PIECES_MAX 256u

static struct {
    uintptr_t start;
    uint64_t bytes; /* written last; 0: none, or given back */
} pieces[PIECES_MAX];
static uint32_t n_pieces;
static int sealed;

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
    return !load_relaxed(&sealed) && !sys_call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0);
}

/* Of what the program is limited to we take an eighth at most, in all. RLIMIT_DATA counts what can be written, touched or not. */
static bool is_within(int what, uint64_t bytes)
{
    struct rlimit limit;
    if (sys_call(SYS_getrlimit, what, &limit))
        return false;
    for (uint32_t i = 0; i < PIECES_MAX && i < load_relaxed(&n_pieces); i++)
        bytes += load_acquire(&pieces[i].bytes);
    return limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur / 8;
}

/*
 * Where address space is limited, or counted as if it were memory (strict
 * overcommit), it would be the program's; and after seccomp a system call may be the last.
 */
static bool may_reserve(uint64_t bytes)
{
    static char strict; /* '2': so it is; 0: not known yet */
    if (!vm_reserve_may_call())
        return false;
    if (!strict) {
        long fd = sys_call(SYS_openat, AT_FDCWD, "/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
        if (sys_failed(fd) || sys_call(SYS_read, fd, &strict, 1) != 1)
            strict = '0';
        if (!sys_failed(fd))
            sys_call(SYS_close, fd);
    }
    return strict != '2' && is_within(RLIMIT_AS, bytes) && is_within(RLIMIT_DATA, bytes);
}

static bool note(uintptr_t start, uint64_t bytes)
{
    uint32_t n = __atomic_fetch_add(&n_pieces, 1, __ATOMIC_RELAXED);
    if (n >= PIECES_MAX)
        return false;
    pieces[n].start = start;
    store_release(&pieces[n].bytes, bytes);
    return true;
}

/* Not accessible at first, or mlockall(MCL_FUTURE) in the program would back all of it. */
void *vm_reserve(uint64_t bytes, bool wiped)
{
    if (!may_reserve(bytes))
        return NULL;
    long p = sys_call(SYS_mmap, 0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sys_failed(p))
        return NULL;
    sys_call(SYS_munlock, p, bytes);
    sys_call(SYS_madvise, p, bytes, MADV_DONTDUMP);
    if ((!wiped || !sys_failed(sys_call(SYS_madvise, p, bytes, MADV_WIPEONFORK))) &&
        note((uintptr_t)p, bytes) && !sys_failed(sys_call(SYS_mprotect, p, bytes, PROT_READ | PROT_WRITE)))
        return (void *)p;
    vm_reserve_release((void *)p, bytes);
    return NULL;
}

void vm_reserve_release(void *memory, uint64_t bytes)
{
    for (uint32_t i = 0; i < PIECES_MAX && i < load_relaxed(&n_pieces); i++)
        if (pieces[i].start == (uintptr_t)memory)
            store_relaxed(&pieces[i].bytes, 0);
    sys_call(SYS_munmap, memory, bytes);
}

/* Mappings side by side are one to the kernel: what begins in a piece may go on in the next. */
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
