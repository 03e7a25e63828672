/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of libc that make children with the memory of their parent, for processes without the full agent, which
 * has functions of its own (agent/tracer/tracer_clone.c): the events of such a child must not go into a CPU's ring.
 *
 * The program may also make a child by a system call instruction of its own. If that child has its own thread-local
 * storage, the library examines it when it writes its first event. If not, the library does not notice the child.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/sigsafe/compiler.h"
#include "tag/event_rings.h"
#include "tag/tag_internal.h"
#include "target/seccomp_guard.h"
#include "target/vfork_call.h"

static vfork_clone_fn *next_clone;
static long (*next_syscall)(long, long, long, long, long, long, long);

static __attribute__((used)) uint64_t child_begins(void)
{
    return event_rings_child_begins();
}

static __attribute__((used)) void child_ended(uint64_t before)
{
    event_rings_child_ended((unsigned)before);
}

static __attribute__((used)) pid_t child_failed(int error)
{
    errno = error;
    return -1;
}

VFORK_CALL(TAG_EXPORT, event_vfork, child_begins, child_ended, child_failed)
VFORK_SYSCALL(event_syscall, child_begins, child_ended, next_syscall)

static void find_clone(void)
{
    next_clone = (vfork_clone_fn *)(uintptr_t)dlsym(RTLD_NEXT, "clone");
}

void event_vfork_begin(void)
{
    find_clone();
    next_syscall = seccomp_next.syscall;
    seccomp_next.syscall = (void *)event_syscall;
}

VFORK_CLONE(TAG_EXPORT, event_clone, child_begins, child_ended, next_clone, find_clone)
