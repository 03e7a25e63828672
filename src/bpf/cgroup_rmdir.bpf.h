/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_CGROUP_RMDIR_BPF_H
#define BPF_CGROUP_RMDIR_BPF_H

/*
 * The paths of cgroups that are removed while a tool runs: rows are named at the end of a report, when no file tells
 * the path of such a cgroup any more.
 *
 * Runs in: the kernel.
 */

#include "bpf/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/sys.h"

const volatile __s32 cgroups_gone_hierarchy = 0; /* set before the programs are loaded */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 4096);
    __type(key, __u64); /* kernfs id */
    __type(value, struct sys_cgroup_gone);
} cgroups_gone SEC(".maps");

SEC("raw_tp/cgroup_rmdir") int BPF_PROG(cgroup_gone, const struct cgroup *group, const char *path)
{
    struct sys_cgroup_gone gone = {0};
    (void)ctx;
    __u64 id = BPF_CORE_READ(group, kn, id);
    if (BPF_CORE_READ(group, root, hierarchy_id) != cgroups_gone_hierarchy)
        return 0;
    if (bpf_probe_read_kernel_str(gone.path, sizeof(gone.path), path) > 0)
        bpf_map_update_elem(&cgroups_gone, &id, &gone, BPF_ANY);
    return 0;
}

#endif
