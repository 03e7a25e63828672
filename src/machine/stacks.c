/* SPDX-License-Identifier: BSD-2-Clause */
/* The frames behind a number of a stack. */
#include <string.h>

#include "machine/session.h"

/* The second table is keyed by the frames: the number is looked for among all, which are few. */
static bool find_second(struct sys_session *s, uint32_t number, struct sys_frames *f)
{
    int map = sys_map(s, "second_stacks");
    uint32_t value;
    struct sys_frames before, *from = NULL;
    while (!bpf_map_get_next_key(map, from, f)) {
        if (!bpf_map_lookup_elem(map, f, &value) && value == number)
            return true;
        before = *f;
        from = &before;
    }
    return false;
}

unsigned sys_stack_frames(struct sys_session *s, int id, uint64_t frames[static SYS_STACK_DEPTH])
{
    struct sys_frames f;
    unsigned n = 0;
    if (id < 0)
        return 0;
    uint32_t number = (uint32_t)id;
    bool found = number >= SYS_STACK_SECOND ? find_second(s, number - SYS_STACK_SECOND, &f)
                                            : !bpf_map_lookup_elem(sys_map(s, "stacks"), &number, &f);
    for (; found && n < SYS_STACK_DEPTH && f.ip[n]; n++)
        frames[n] = f.ip[n];
    return n;
}
