/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Children that share the memory of their parent: those of vfork(2), and of clone(2) with CLONE_VM.
 *
 * Such a child must not write into a CPU's ring (target/vfork_call.h). The functions below mark the thread's storage
 * (TRACER_UNREGISTERED) while there is one: it then writes into the ring that threads share, as the thread that has
 * called.
 *
 * posix_spawn(3) makes its child inside libc, and allocates nothing there. The program may also make a child by a
 * system call instruction of its own. If that child has its own thread-local storage, the agent examines it when it
 * writes its first event. If not, the agent does not notice the child.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/hooks/cold.h"
#include "agent/hooks/resolve.h"
#include "agent/reentry.h"
#include "agent/tag_bridge.h"
#include "agent/tracer/tracer.h"
#include "agent/tracer/tracer_life.h"
#include "agent/tracer/tracer_rings.h"
#include "base/sigsafe/syscall.h"
#include "target/seccomp_guard.h"
#include "target/vfork_call.h"

static vfork_clone_fn *next_clone;
static long (*next_syscall)(long, long, long, long, long, long, long);

/* The result of child_begins(): the thread's number, its depth at DEPTH_AT, liballium.so's result at THEIRS_AT. */
#define DEPTH_AT  32
#define THEIRS_AT 60

/* Marks the thread's storage. Returns what is to be restored: the child may be killed amid a function of the agent. */
static __attribute__((used)) uint64_t child_begins(void)
{
    uint8_t outside;
    if (tracer_on && process_is_known(&thread_self) && tracer_know_thread() && tracer_rings_made()) {
        outside = ledger_enter(&thread_self);
        tracer_life_thread_begins();
        ledger_exit(&thread_self, outside);
    }
    const uint32_t before = tracer_thread;
    tracer_thread = before | TRACER_UNREGISTERED;
    const uint64_t theirs = agent_api_tags ? agent_api_tags->child_begins() : 0;
    return theirs << THEIRS_AT | (uint64_t)thread_self.reentry_depth << DEPTH_AT | before;
}

static __attribute__((used)) void child_ended(uint64_t before)
{
    tracer_thread = (uint32_t)before;
    thread_self.reentry_depth = (uint8_t)(before >> DEPTH_AT);
    if (agent_api_tags)
        agent_api_tags->child_ended((unsigned)(before >> THEIRS_AT));
}

static __attribute__((used)) pid_t child_failed(int error)
{
    errno = error;
    return -1;
}

VFORK_CALL(EXPORT, tracer_vfork, child_begins, child_ended, child_failed)
VFORK_SYSCALL(tracer_syscall, child_begins, child_ended, next_syscall)

void tracer_find_next(void)
{
    next_clone = (vfork_clone_fn *)resolve_next("clone", NULL);
    next_syscall = seccomp_next.syscall;
    seccomp_next.syscall = (void *)tracer_syscall;
}

VFORK_CLONE(EXPORT, tracer_clone, child_begins, child_ended, next_clone, boot_agent)
