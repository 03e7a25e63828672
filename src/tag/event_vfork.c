/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The vfork() of processes without the full agent, which has one of its own (agent/tracer/tracer_clone.c): the child's
 * events must not go into a CPU's ring.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/types.h>

#include "tag/event_rings.h"
#include "tag/tag_internal.h"
#include "target/vfork_call.h"

static __attribute__((used)) uint64_t child_begins(void)
{
    return event_rings_share(true);
}

static __attribute__((used)) void child_ended(uint64_t before)
{
    event_rings_share(before);
}

static __attribute__((used)) pid_t child_failed(int error)
{
    errno = error;
    return -1;
}

VFORK_CALL(TAG_EXPORT, event_vfork, child_begins, child_ended, child_failed)
