/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's part of the seccomp guard: after the program has entered seccomp, the ledger does not grow. */
#include "target/seccomp_guard.h"

#include "agent/clock.h"
#include "agent/hooks/cold.h"
#include "base/sigsafe/syscall.h"

/* If a vfork child enters seccomp, its parent, whose memory it shares, does not: `process` is not sealed. */
struct seccomp_effects seccomp_begin(struct seccomp_effects w)
{
    bool leads_in = (w.seals || w.freezes) && !load_relaxed(&process.ledger.sealed);
    if (leads_in && process_ensure_current(&thread_self) && sys_call(SYS_getpid, 0) != process.pid)
        return (struct seccomp_effects){.seals = false};
    if (w.seals)
        process_seal();
    /* If an earlier call has frozen the clock, a failure of this call must not thaw it. */
    w.freezes = w.freezes && clock_freeze();
    return w;
}

void seccomp_end(struct seccomp_effects w, bool failed)
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
