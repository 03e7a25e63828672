/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/exec/exec_scratch.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#include "agent/process.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"

#define PAGE          4096u
#define FIRST_BYTES   (24u << 10) /* enough for some 1,000 variables; pages that are not used take no memory */
#define LEFTOVERS_MAX 32u
/* A symbol table with more bytes of names is not searched, because this would delay the exec by milliseconds. */
#define NAMES_BYTES_MAX (4u << 20)

/* The mapping of a vfork child. The child passes the address of `owner` to set_tid_address(2): the kernel then sets
 * `owner` to 0 when the child leaves the memory of its parent, by exec or by exit. If an entry has a mapping but no
 * owner, the mapping is left over. */
static struct exec_leftover {
    uint32_t owner; /* thread id; 0: nobody uses this entry */
    struct exec_scratch *mapping;
    size_t bytes;
} leftovers[LEFTOVERS_MAX];

static bool acquire(struct exec_leftover *l)
{
    uint32_t nobody = 0;
    return !load_relaxed(&l->owner) &&
           __atomic_compare_exchange_n(&l->owner, &nobody, (uint32_t)sys_call(SYS_gettid, 0), false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void remove_mapping(struct exec_leftover *l)
{
    sys_call(SYS_munmap, l->mapping, l->bytes);
    store_relaxed(&l->mapping, NULL);
}

static void remove_leftovers(void)
{
    for (unsigned i = 0; i < LEFTOVERS_MAX; i++) {
        struct exec_leftover *l = &leftovers[i];
        if (!load_relaxed(&l->mapping) || !acquire(l))
            continue;
        if (l->mapping)
            remove_mapping(l);
        store_release(&l->owner, 0);
    }
}

/* True if the caller is a vfork child, which shares its parent's memory. Threads and children of libc's fork() have a
 * word that the kernel clears when they end (set_tid_address(2)), vfork children have none. If the kernel does not tell
 * its address (no CONFIG_CHECKPOINT_RESTORE), process_is_current() decides: it is false in a fork child before its
 * first update. */
static bool shares_memory(void)
{
    const int *cleared = NULL;
    if (sys_call(SYS_getpid, 0) == process.pid)
        return false;
    if (sys_failed(sys_call(SYS_prctl, PR_GET_TID_ADDRESS, &cleared)))
        return process_is_current();
    return !cleared;
}

static struct exec_leftover *enter_leftover(struct exec_scratch *s)
{
    for (unsigned i = 0; i < LEFTOVERS_MAX; i++) {
        struct exec_leftover *l = &leftovers[i];
        if (!acquire(l))
            continue;
        if (l->mapping)
            remove_mapping(l);
        l->bytes = s->bytes;
        store_relaxed(&l->mapping, s);
        sys_call(SYS_set_tid_address, &l->owner);
        return l;
    }
    return NULL;
}

struct exec_scratch *exec_scratch_take(void)
{
    remove_leftovers();
    long at = sys_call(SYS_mmap, 0, FIRST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_failed(at))
        return NULL;
    struct exec_scratch *s = (struct exec_scratch *)at;
    s->bytes = FIRST_BYTES;
    s->check.strings_max = NAMES_BYTES_MAX;
    if (!shares_memory() || (s->own = enter_leftover(s)))
        return s;
    sys_call(SYS_munmap, s, FIRST_BYTES);
    return NULL;
}

bool exec_scratch_reserve(struct exec_scratch **scratch, size_t bytes)
{
    struct exec_scratch *s = *scratch;
    size_t need = (offsetof(struct exec_scratch, rest) + bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
    if (need <= s->bytes)
        return true;
    long at = sys_call(SYS_mremap, s, s->bytes, need, MREMAP_MAYMOVE);
    if (sys_failed(at))
        return false;
    *scratch = s = (struct exec_scratch *)at;
    s->bytes = need;
    if (s->own) {
        s->own->bytes = need;
        store_relaxed(&s->own->mapping, s);
    }
    return true;
}

void exec_scratch_release(struct exec_scratch *s)
{
    struct exec_leftover *l = s->own;
    if (l)
        store_relaxed(&l->mapping, NULL);
    sys_call(SYS_munmap, s, s->bytes);
    if (l) {
        sys_call(SYS_set_tid_address, NULL);
        store_release(&l->owner, 0);
    }
}
