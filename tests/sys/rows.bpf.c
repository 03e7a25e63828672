// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rows as tools have them, of threads that rename themselves. A program that is interrupted by another of ours between
 * reading a sum and writing it back is played by one that begins to add to the row again and again before the first is
 * through.
 */
#include "bpf/sys.bpf.h"

#include "rows.h"

SYS_TABLE(struct rows_key, struct rows_value)

const volatile __u32 deep = 1; /* so many are under way at once */

SEC("raw_tp/task_rename") int BPF_PROG(renames, const struct task_struct *task, const char *comm)
{
    struct rows_value *v[ROWS_DEEPEST];
    __u64 had[ROWS_DEEPEST];
    if (!wanted())
        return 0;
#pragma unroll
    for (int i = 0; i < (int)ROWS_DEEPEST; i++) {
        struct row_key row = {0};
        bpf_probe_read_kernel(&row.key, sizeof(row.key), comm);
        v[i] = (__u32)i < deep ? row_at(&row) : NULL;
        if (v[i])
            had[i] = v[i]->events;
    }
#pragma unroll
    for (int i = (int)ROWS_DEEPEST - 1; i >= 0; i--)
        if (v[i]) {
            v[i]->events = had[i] + 1;
            row_done(v[i]);
        }
    return 0;
}
