/* SPDX-License-Identifier: BSD-2-Clause */
/* After seccomp the ledger does not grow any more. */
#include "target/seccomp_guard.h"

#include "agent/clock.h"
#include "agent/hooks/cold.h"
#include "base/sigsafe/syscall.h"

/* A vfork child goes alone, though it runs in our memory. */
struct seccomp_way seccomp_begin(struct seccomp_way w)
{
    bool leads_in = (w.seals || w.freezes) && !load_relaxed(&process.ledger.sealed);
    if (leads_in && process_ensure_current(&thread_self) && sys_call(SYS_getpid, 0) != process.pid)
        return (struct seccomp_way){.seals = false};
    if (w.seals)
        process_seal();
    w.freezes = w.freezes && clock_freeze(); /* what an earlier call froze stays so if this one fails */
    return w;
}

void seccomp_end(struct seccomp_way w, bool failed)
{
    if (failed && w.freezes)
        clock_thaw();
    if (failed && w.seals)
        process_unseal();
}

void seccomp_boot(void)
{
    boot_agent();
}
