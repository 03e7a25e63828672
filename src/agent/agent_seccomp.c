/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's part of target/seccomp_guard.h: seals the process and stops the clock before the program's call. */
#include "target/seccomp_guard.h"

#include "agent/clock.h"
#include "agent/hooks/cold.h"
#include "base/sigsafe/syscall.h"

/* Does nothing in a vfork child of an unsealed process: the child shares `process` with its unrestricted parent. */
struct seccomp_effects seccomp_begin(struct seccomp_effects w)
{
    bool leads_in = (w.seals || w.freezes) && !load_relaxed(&process.ledger.sealed);
    if (leads_in && process_ensure_current(&thread_self) && sys_call(SYS_getpid, 0) != process.pid)
        return (struct seccomp_effects){.seals = false};
    if (w.seals)
        process_seal();
    /* If the clock was stopped before this call, seccomp_end() must not start it, even if the program's call fails. */
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
