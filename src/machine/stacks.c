/* SPDX-License-Identifier: BSD-2-Clause */
/* The frames behind a number of a stack. */
#include "machine/stacks.h"

#include <string.h>

#include "base/map.h"

struct second_stacks {
    struct map index; /* number -> place in `frames` */
    struct VEC(struct sys_frames) frames;
};

void stacks_release(struct sys_session *s)
{
    if (!s->second)
        return;
    map_release(&s->second->index);
    vec_release(&s->second->frames);
    free(s->second);
    s->second = NULL;
}

static void remember(void *arg, const void *key, const void *value)
{
    struct second_stacks *second = arg;
    bool added;
    map_put_u64(&second->index, *(const uint32_t *)value, second->frames.len, &added);
    if (added)
        *vec_push(&second->frames) = *(const struct sys_frames *)key;
}

/* The second table is keyed by the frames, and numbers are asked for: what it holds is read when one is not known yet. */
static bool find_second(struct sys_session *s, uint32_t number, struct sys_frames *f)
{
    if (!s->second)
        s->second = mem_alloc(sizeof(*s->second));
    size_t at = map_get_u64(&s->second->index, number);
    if (at == MAP_NONE) {
        sys_each(s, "second_stacks", remember, s->second);
        at = map_get_u64(&s->second->index, number);
    }
    if (at != MAP_NONE)
        *f = s->second->frames.at[at];
    return at != MAP_NONE;
}

/* The same without taking memory: one after the other. */
static bool seek_second(struct sys_session *s, uint32_t number, struct sys_frames *f)
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
    bool found = number < SYS_STACK_SECOND ? !bpf_map_lookup_elem(sys_map(s, "stacks"), &number, &f)
                 : s->tool->urgent         ? seek_second(s, number - SYS_STACK_SECOND, &f)
                                           : find_second(s, number - SYS_STACK_SECOND, &f);
    for (; found && n < SYS_STACK_DEPTH && f.ip[n]; n++)
        frames[n] = f.ip[n];
    return n;
}
