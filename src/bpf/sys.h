/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_SYS_H
#define BPF_SYS_H

/*
 * What every tool of `allium sys` has on both sides of the kernel's boundary: its configuration, the head of its
 * events, what it counts as lost, and the word with which the reader says how it wants to be woken.
 *
 * Runs in: kernel and tool. Fixed-width members only, no padding that is not named.
 */

#ifndef __BPF__
#include <linux/types.h>
#endif

#define SYS_COMM_BYTES  16
#define SYS_STACK_DEPTH 127
#define SYS_NO_STACK    (-1) /* not asked for */

/** In which /proc tells when a process began (USER_HZ). */
#define SYS_TICK_NS 10000000u

enum sys_filter {
    SYS_FILTER_TGID = 1u << 0,
    SYS_FILTER_TID = 1u << 1,
    SYS_FILTER_UID = 1u << 2,
    SYS_FILTER_COMM = 1u << 3,
    SYS_FILTER_CGROUP = 1u << 4,    /* v2, and what lies below it */
    SYS_FILTER_CGROUP_V1 = 1u << 5, /* of the v1 memory hierarchy */
};

enum sys_stacks {
    SYS_STACK_KERNEL = 1u << 0,
    SYS_STACK_USER = 1u << 1,
};

/** Set before the programs are loaded; what it does not ask for, the verifier takes out. */
struct sys_config {
    __u32 own_tgid; /* the tool's own process, whose events are left out; 0: none are */
    /* allium's, by its inode: numbers of processes are those that it sees; 0: the initial one */
    __u32 pid_namespace;
    __u32 filters; /* enum sys_filter */
    __u32 tgid, tid, uid;
    __u32 cgroup_level; /* steps from the hierarchy's root */
    __u64 cgroup_id;
    __u64 tgid_began,
        tid_began;            /* CLOCK_BOOTTIME in ticks: another process may get the number later; 0: any */
    __s64 boottime_offset_ns; /* of allium's time namespace, which is in these */
    char comm[SYS_COMM_BYTES];
    __u32 stacks; /* enum sys_stacks */
    __u32 parts;  /* bits of the tool's own: by what its rows are told apart */
    /* of so many events one brings its user stack's bytes; 0: user stacks go by frame pointers */
    __u32 sample;
    __u32 urgent; /* each event wakes the reader */
    __u32 backlog_bytes;
    __u32 stack_slots; /* a power of two */
    __u32 cgroup_v1;   /* a task's cgroup is that of the v1 memory hierarchy, else of v2 */
    __u32 histograms;  /* rows have one each, of what the tool measures */
    __u32 cgroups;     /* rows are of processes, and have the cgroup of each */
};

enum sys_reader {
    SYS_READER_BUSY,   /* it will look again by itself */
    SYS_READER_DOZES,  /* ... later: wake it when there is a backlog */
    SYS_READER_SLEEPS, /* wake it for the first record */
};

/**
 * Whether anything is counted yet, or still; which of a tool's two tables is written to; how the reader of its events
 * waits.
 */
struct sys_state {
    __u32 reader;      /* enum sys_reader; swapped by whoever wakes */
    __u32 active;      /* 0 or 1 */
    __u32 samples;     /* of user stacks, begun so far */
    __u32 runs;        /* 1 from when all programs are attached until the first is detached */
    __u32 has_rows[2]; /* of each table: 0 when nothing has been added since it was taken */
};

/** What stands before the key of a row: whose it is, see SYS_TABLE(). */
#define SYS_ROW_HEAD_BYTES 8u
/** So many programs can be under way on a CPU, each interrupting the other: of a task, softirq, interrupt, NMI. */
#define SYS_ROW_LEVELS 4u

/** Counted on each CPU. */
enum sys_count {
    SYS_OWN,          /* events of the tool itself, left out */
    SYS_RING_FULL,    /* events lost */
    SYS_TABLE_FULL,   /* events that found no room for a row */
    SYS_STACK_FAILED, /* stacks that could not be read */
    SYS_STACKS_FULL,  /* stacks for which there was no room */
    SYS_LIVE_FULL,    /* live objects for which there was no room */
    SYS_SAMPLE_LOST,  /* samples of user stacks for which there was no room */
    SYS_MISSED = 16,  /* events for which no program ran, as they interrupted it: counted by the kernel */
    SYS_MAPS_LOST,    /* records of what processes map, which the kernel had no room for */
    SYS_UNTRUSTED,    /* frames of user stacks that are marked, counted when they are named; none is lost */
    SYS_NAMELESS,     /* frames of user stacks of which nobody knows what lay there; none is lost */
    SYS_COUNTS        /* the rest are a tool's own, from SYS_COUNT_OWN */
};
#define SYS_COUNT_OWN 8

/** Who was running. */
struct sys_task {
    __u64 cgroup; /* its kernfs id, see config.cgroup_v1 */
    __u32 pid, tid, uid;
    __u32 reserved;
    char comm[SYS_COMM_BYTES];
};

/** Every event begins so. */
struct sys_event {
    __u64 time_ns; /* CLOCK_MONOTONIC */
    struct sys_task task;
    __s32 kernel_stack,
        user_stack; /* SYS_NO_STACK, another error below 0, or a number in the table of stacks */
};

/** A row's histogram: slot 0 counts values of 0 and 1, slot i from 2^i to below 2^(i + 1), the last one all beyond. */
#define SYS_SLOTS 44
struct sys_histogram {
    __u64 slots[SYS_SLOTS];
};

/**
 * What stands in a row behind the tool's own values, which end at a multiple of 8 bytes. What is not asked for at the
 * end takes no room: a table's values are as long as config says.
 */
struct sys_row_tail {
    volatile __u64 busy; /* somebody is adding to it */
    __u64 cgroup; /* as that of struct sys_task: whose the row was when it was made; 0: not asked for */
    struct sys_histogram histogram;
};

/** With --sample, user stacks are numbers of samples; see struct sys_sample. */
#define SYS_STACK_SAMPLED     (1 << 30)
#define SYS_STACK_NOT_SAMPLED (-1000) /* no error: it was not its turn */
#define SYS_STACK_NONE        (-1001) /* it was, but there is no user stack, or it was lost */

struct sys_frames {
    __u64 ip[SYS_STACK_DEPTH]; /* innermost first; 0 after the last */
};

enum sys_stack_state { SYS_STACK_FREE, SYS_STACK_WRITTEN, SYS_STACK_READY };

/** A slot of the table of stacks: what its number leads to. */
struct sys_stack {
    /* enum sys_stack_state; a CPU that has made it SYS_STACK_WRITTEN has it to itself until it is ready */
    __u32 state;
    __u32 n; /* frames */
    __u64 hash;
    struct sys_frames frames;
};

/**
 * Bytes of a process's memory as they lay from `from` on; of pages that could not be read, what stands there means
 * nothing.
 */
struct sys_run {
    __u64 from;
    __u32 bytes;
    __u32 missing; /* bit i: the page i after that of `from` */
};

#define SYS_SAMPLE_RUNS       2u
#define SYS_SAMPLE_REGS       17u
#define SYS_SAMPLE_PAGES      16u /* of 4 KiB, at most, of all runs together */
#define SYS_SAMPLE_BYTES      (SYS_SAMPLE_PAGES * 4096u)
#define SYS_SAMPLE_RING_BYTES (8u << 20)

/**
 * A user stack as it was: registers, and the bytes from the stack pointer on. They follow behind, those of one run
 * after those of the other: of a signal's stack, if it is on one, and of the stack that the signal interrupted.
 */
struct sys_sample {
    __u64 time_ns;
    __u32 pid, number;           /* of the sample */
    __u64 arguments;             /* where the kernel put the program's: its stack begins there */
    __u64 regs[SYS_SAMPLE_REGS]; /* by their DWARF numbers, the last one is where it was */
    struct sys_run run[SYS_SAMPLE_RUNS];
};

#endif
