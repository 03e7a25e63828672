/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_OOMKILL_H
#define BPF_OOMKILL_H

/*
 * Events of `allium sys oomkill`: one for each process that the kernel picked to die. The head is about the
 * trigger: the task that requested memory when there was none.
 */

#include "bpf/memcg.h"
#include "bpf/sys.h"

#define OOMKILL_LARGEST    10
#define OOMKILL_LEVELS     10 /* of a cgroup's path */
#define OOMKILL_NAME_BYTES 96 /* of one of them */
#define OOMKILL_NO_LIMIT   (~0ull)

enum oomkill_scope {
    OOMKILL_GLOBAL,
    OOMKILL_CPUSET,
    OOMKILL_MEMPOLICY,
    OOMKILL_MEMCG,
};

enum oomkill_outcome {
    OOMKILL_KILLED,
    /* it was about to end anyway, and was allowed to use the reserves for that: nothing is killed */
    OOMKILL_EXITING,
};

/** The names of a cgroup and those above it, without the root. */
struct oomkill_path {
    __u32 levels;                                  /* 0: the root */
    __u32 cut;                                     /* there are more levels above */
    char name[OOMKILL_LEVELS][OOMKILL_NAME_BYTES]; /* its own first */
};

struct oomkill_memory {
    __s64 anon_pages, file_pages, shmem_pages, swap_pages;
};

struct oomkill_process {
    struct oomkill_memory memory;
    __u32 pid;
    __s16 oom_score_adj;
    __u16 in_memcg; /* it is in the full memory cgroup */
    char comm[SYS_COMM_BYTES];
};

struct oomkill_event {
    struct sys_event head;
    __u64 memcg_id;               /* of the memory hierarchy */
    __u32 victim_pid, victim_uid; /* pids; as everywhere 0 if the process is not in allium's PID namespace */
    __u32 victim_inner_pid;       /* pid in its own PID namespace; 0: that is the initial one, or not known */
    __u32 reserved;
    char victim_comm[SYS_COMM_BYTES];
    struct oomkill_memory memory;
    __u64 page_table_bytes, total_vm_pages;
    __s16 oom_score_adj;
    __u8 outcome, scope; /* enum oomkill_outcome, oomkill_scope */
    __u8 exact;       /* scope, order, gfp and total_pages come from the kernel; else the scope is inferred */
    __u8 approximate; /* memory may lack counts that CPUs or threads have not added yet */
    __u8 limit;       /* enum memcg_limit */
    __u8 walk_cut;    /* not all processes were read */
    __s32 order;      /* -1: SysRq requested the kill */
    __u32 gfp;
    __u64 total_pages;                   /* size of the scope */
    __u64 limit_pages, usage_pages;      /* of the memory cgroup; OOMKILL_NO_LIMIT */
    __u64 loads[3];                      /* times 2048, as the kernel keeps them */
    __u16 loads_known, victim_requested; /* victim_requested: the trigger is the victim */
    __u32 processes;                     /* number of processes that were read, without kernel threads */
    /* number of other processes that share the victim's memory and die with it */
    __u32 sharing;
    __u32 n_largest;
    struct oomkill_process largest[OOMKILL_LARGEST]; /* not sorted */
    struct oomkill_path memcg, victim_cgroup;
};

enum oomkill_count {
    OOMKILL_UNKNOWN_VICTIM = SYS_COUNT_OWN, /* only the victim's pid is known */
    OOMKILL_WALK_CUT,                       /* events for which not all processes were read */
    OOMKILL_REQUESTS_FULL,                  /* requests that were not recorded: their events are inferred */
};

#endif
