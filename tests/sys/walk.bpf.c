// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* User stacks of threads that rename themselves, beside those that the kernel's own walk finds. */
#include "bpf/kernel.h"

const volatile bool one_hash = false; /* all stacks have the same one */
#define STACK_HASH(hash, address) (one_hash ? 1 : (hash)*31 + (address))

#include "bpf/sys.bpf.h"

#include "walk.h"

SYS_TABLE(struct walk_key, struct walk_value)

const volatile __u32 busy = 0; /* so many of our programs were interrupted while they took a stack */

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct sys_frames));
} theirs SEC(".maps");

static __always_inline void interrupted(__u32 value)
{
    for (__u32 level = 0; level < STACK_LEVELS && level < busy; level++) {
        __u32 index = level;
        struct stack_scratch *s = bpf_map_lookup_elem(&stack_scratch, &index);
        if (s)
            s->busy = value;
    }
}

static __always_inline bool same_stack(__u32 slot, const struct sys_frames *f, __u32 n, __u32 *ours)
{
    const struct sys_stack *have = bpf_map_lookup_elem(&stacks, &slot);
    if (!have)
        return false;
    *ours = have->n;
    if (have->n != n)
        return false;
    for (__u32 i = 0; i < SYS_STACK_DEPTH && i < n; i++)
        if (have->frames.ip[i] != f->ip[i])
            return false;
    return true;
}

SEC("raw_tp/task_rename") int BPF_PROG(renames, const struct task_struct *task, const char *comm)
{
    struct row_key row = {0};
    __u32 zero = 0, ours = 0;
    struct sys_frames *f = bpf_map_lookup_elem(&theirs, &zero);
    if (!f || !wanted())
        return 0;
    interrupted(1);
    int number = user_stack_now(ctx);
    interrupted(0);
    long bytes = bpf_get_stack(ctx, f, sizeof(*f), BPF_F_USER_STACK);
    __u32 n = bytes > 0 ? bytes / sizeof(*f->ip) : 0;
    bpf_probe_read_kernel(&row.key, sizeof(row.key), comm);
    struct walk_value *v = row_at(&row);
    if (!v)
        return 0;
    v->events++;
    v->same += number >= 0 && same_stack(number, f, n, &ours);
    v->ours = ours;
    v->theirs = n;
    v->number = number;
    row_done(v);
    return 0;
}
