/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seccomp guard of the tag library. After the process has entered seccomp, the library makes no system call: the
 * ledger does not grow, and new threads use the shared shard.
 */
#include "target/seccomp_guard.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/syscall.h"
#include "tag/event_rings.h"
#include "tag/user_sums.h"
#include "tag/tag_ledger.h"
#include "target/object_map.h"
#include "target/vm_reserve.h"

#define SEALED_ROOM (256u << 10) /* bytes backed in advance for each growing table of the ledger */

/* Called just before seccomp, while system calls are still allowed. */
static void take_room(void)
{
    static const enum ledger_table growing[] = {LEDGER_STRINGS,      LEDGER_MODULES,    LEDGER_FRAMES,
                                                LEDGER_STACK_FRAMES, LEDGER_STACKS,     LEDGER_ACCOUNTS,
                                                LEDGER_TAGS,         LEDGER_TAG_STACKS, LEDGER_LATENCIES};
    for (unsigned i = 0; i < sizeof(growing) / sizeof(*growing); i++) {
        const struct ledger_region *r = &process.ledger.header->regions[growing[i]];
        uint64_t end = r->ready_bytes + SEALED_ROOM;
        ledger_reach(&process.ledger, growing[i], end < r->limit_bytes ? end : r->limit_bytes);
    }
    object_map_take_room(OBJECT_MAP_ROOM_TAGS);
    user_sums_seal();
}

/* If a vfork child enters seccomp, nothing is marked as sealed: the child shares the memory of its parent, and the
 * parent may still make system calls. */
struct seccomp_effects seccomp_begin(struct seccomp_effects w)
{
    bool first = w.seals && !vm_reserve_is_sealed();
    if (first && tag_ledger_open() && process.ledger.header->pid != sys_call(SYS_getpid, 0))
        w.seals = false;
    else if (first && process_has_ledger())
        take_room();
    if (w.seals) {
        vm_reserve_seal(1);
        __atomic_fetch_add(&process.ledger.sealed, 1, __ATOMIC_RELAXED);
    }
    w.freezes = w.freezes && event_rings_freeze();
    return w;
}

void seccomp_end(struct seccomp_effects w, bool failed)
{
    if (failed && w.seals) {
        __atomic_fetch_sub(&process.ledger.sealed, 1, __ATOMIC_RELAXED);
        vm_reserve_seal(-1);
    }
    if (failed && w.freezes)
        event_rings_thaw();
}

/* dlsym() allocates nothing if it finds the name. */
void seccomp_boot(void)
{
    void *their_prctl = dlsym(RTLD_NEXT, "prctl"), *their_syscall = dlsym(RTLD_NEXT, "syscall");
    seccomp_next.prctl =
        (int (*)(int, unsigned long, unsigned long, unsigned long, unsigned long))(uintptr_t)their_prctl;
    seccomp_next.syscall = (long (*)(long, long, long, long, long, long, long))(uintptr_t)their_syscall;
    event_vfork_begin();
}

/* Calls dlsym() when the library is loaded, so that no signal handler and no thread with a small stack has to. */
__attribute__((constructor)) static void begin(void)
{
    seccomp_boot();
}
