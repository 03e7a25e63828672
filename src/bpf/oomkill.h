/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_OOMKILL_H
#define BPF_OOMKILL_H

/*
 * Events of `allium sys oomkill`: one for each process that the kernel picked to die for its memory. The head is the
 * trigger's: the task that asked for memory when there was none.
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
    OOMKILL_EXITING, /* it was about to end anyway, and got the reserves so that it can: nothing is killed */
};

/** Names of a cgroup and those above it, the root left out. */
struct oomkill_path {
    __u32 levels;                                  /* 0: the root */
    __u32 cut;                                     /* there are more above */
    char name[OOMKILL_LEVELS][OOMKILL_NAME_BYTES]; /* its own first */
};

struct oomkill_memory {
    __s64 anon_pages, file_pages, shmem_pages, swap_pages;
};

struct oomkill_process {
    struct oomkill_memory memory;
    __u32 pid;
    __s16 oom_score_adj;
    __u16 in_memcg; /* in the memory cgroup that is full */
    char comm[SYS_COMM_BYTES];
};

struct oomkill_event {
    struct sys_event head;
    __u64 memcg_id;               /* of the memory hierarchy */
    __u32 victim_pid, victim_uid; /* as all numbers of processes: 0 where allium's PID namespace has none */
    __u32 victim_inner_pid; /* in its own PID namespace; 0: that is the initial one, or it is not known */
    __u32 reserved;
    char victim_comm[SYS_COMM_BYTES];
    struct oomkill_memory memory;
    __u64 page_table_bytes, total_vm_pages;
    __s16 oom_score_adj;
    __u8 outcome, scope; /* enum oomkill_outcome, oomkill_scope */
    __u8 exact;       /* scope, order, gfp and total_pages are the kernel's own; else the scope is inferred */
    __u8 approximate; /* memory may lack what CPUs or threads have not added up yet */
    __u8 limit;       /* enum memcg_limit */
    __u8 walk_cut;    /* not all processes were looked at */
    __s32 order;      /* -1: SysRq asked for the kill */
    __u32 gfp;
    __u64 total_pages;               /* that the scope has */
    __u64 limit_pages, usage_pages;  /* of the memory cgroup; OOMKILL_NO_LIMIT */
    __u64 loads[3];                  /* times 2048, as the kernel keeps them */
    __u16 loads_known, asked_itself; /* the latter: the trigger is the victim */
    __u32 processes;                 /* that were looked at, kernel threads left out */
    __u32 sharing;                   /* other processes that have the victim's memory too, and die with it */
    __u32 n_largest;
    struct oomkill_process largest[OOMKILL_LARGEST]; /* in no order */
    struct oomkill_path memcg, victim_cgroup;
};

enum oomkill_count {
    OOMKILL_UNKNOWN_VICTIM = SYS_COUNT_OWN, /* only its number is known */
    OOMKILL_WALK_CUT,                       /* events with processes that were not looked at */
    OOMKILL_REQUESTS_FULL,                  /* requests that were not kept: their events are inferred */
};

#endif
