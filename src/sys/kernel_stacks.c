/* SPDX-License-Identifier: BSD-2-Clause */
/* The frames behind a number of a stack. */
#include <errno.h>
#include <string.h>

#include "sys/session.h"

unsigned sys_stack_frames(struct sys_session *s, int id, uint64_t frames[static SYS_STACK_DEPTH])
{
    struct sys_stack stack;
    uint32_t slot = (uint32_t)id;
    if (id < 0 || bpf_map_lookup_elem(sys_map(s, "stacks"), &slot, &stack) || stack.state != SYS_STACK_READY)
        return 0;
    memcpy(frames, stack.frames.ip, stack.n * sizeof(*frames));
    return stack.n;
}

const char *sys_stack_loss(int id)
{
    switch (id) {
    case SYS_STACK_LOST:
        return "[lost: no room for the sample (see --sample-ring), or not a 64-bit program]\n";
    case -ENOSPC:
        return "[lost: no room for the stack, see --stack-slots]\n";
    case -EFAULT:
        return "[lost: the stack could not be taken]\n";
    default:
        return NULL;
    }
}
