/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_SYS_H
#define BPF_SYS_H

/*
 * Shared by every tool of `allium sys` on both sides of the kernel's boundary: its configuration, the head of
 * its events, its counts of losses, and the word by which the reader says how it wants to be woken.
 *
 * Runs in: kernel and tool. Fixed-width members only, and no implicit padding.
 */

#ifndef __BPF__
#include <linux/types.h>
#endif

#define SYS_COMM_BYTES  16
#define SYS_STACK_DEPTH 127
#define SYS_NO_STACK    (-1) /* not requested */

/** Ticks per second of process start times in /proc (USER_HZ). */
#define SYS_TICK_NS 10000000u

enum sys_filter {
    SYS_FILTER_TGID = 1u << 0,
    SYS_FILTER_TID = 1u << 1,
    SYS_FILTER_UID = 1u << 2,
    SYS_FILTER_COMM = 1u << 3,
    SYS_FILTER_CGROUP = 1u << 4,    /* a v2 cgroup, and those below it */
    SYS_FILTER_CGROUP_V1 = 1u << 5, /* of the v1 memory hierarchy */
};

enum sys_stacks {
    SYS_STACK_KERNEL = 1u << 0,
    SYS_STACK_USER = 1u << 1,
};

/** Set before the programs are loaded. The verifier removes code that the configuration does not need. */
struct sys_config {
    __u32 own_tgid; /* the tool's own process, whose events are left out; 0: none are */
    /* allium's PID namespace, by inode: all pids are in this namespace; 0: the initial one */
    __u32 pid_namespace;
    __u32 filters; /* enum sys_filter */
    __u32 tgid, tid, uid;
    __u32 cgroup_level; /* distance from the hierarchy's root */
    __u64 cgroup_id;
    __u64 tgid_began,
        tid_began;            /* CLOCK_BOOTTIME in ticks: another process may get the number later; 0: any */
    __s64 boottime_offset_ns; /* of allium's time namespace, which is in these */
    char comm[SYS_COMM_BYTES];
    __u32 stacks; /* enum sys_stacks */
    __u32 parts;  /* bits of the tool: by what its rows are grouped */
    /* one event of so many copies its user stack's bytes; 0: user stacks by frame pointers */
    __u32 sample;
    __u32 urgent; /* each event wakes the reader */
    __u32 backlog_bytes;
    __u32 stack_slots; /* a power of two */
    __u32 cgroup_v1;   /* a task's cgroup is that of the v1 memory hierarchy, else of v2 */
    __u32 histograms;  /* each row has a histogram of what the tool measures */
    __u32 cgroups;     /* rows are of processes, and have the cgroup of each */
    __u32 casts;       /* KERNEL_READ() may cast pointers */
    __u32 reserved;
};

enum sys_reader {
    SYS_READER_BUSY,   /* it will check again by itself */
    SYS_READER_DOZES,  /* ... later: wake it when there is a backlog */
    SYS_READER_SLEEPS, /* wake it for the first record */
};

/**
 * Whether counting has begun or ended; which of a tool's two tables is active; how the reader of its events
 * waits.
 */
struct sys_state {
    __u32 reader;      /* enum sys_reader; swapped by the program that wakes the reader */
    __u32 active;      /* 0 or 1 */
    __u32 samples;     /* of user stacks, begun so far */
    __u32 runs;        /* 1 from the time when all programs are attached until the first is detached */
    __u32 has_rows[2]; /* of each table: 0 when nothing was added since it was read */
};

/** The part before the key of a row, see SYS_TABLE(). */
#define SYS_ROW_HEAD_BYTES 8u
/** So many programs can be in progress on a CPU, each interrupting the other: of a task, softirq, interrupt,
 * NMI. */
#define SYS_ROW_LEVELS 4u

/** Counted for each CPU. */
enum sys_count {
    SYS_OWN,          /* events of the tool itself, left out */
    SYS_RING_FULL,    /* events lost */
    SYS_TABLE_FULL,   /* events that found no room for a row */
    SYS_STACK_FAILED, /* stacks that could not be read */
    SYS_STACKS_FULL,  /* stacks for which there was no room */
    SYS_LIVE_FULL,    /* live objects for which there was no room */
    SYS_SAMPLE_LOST,  /* samples of user stacks for which there was no room */
    SYS_PATHS_FULL,   /* attempts to keep a path that found no room; of tools with paths */
    /* events for which no program ran, because they interrupted it; counted by the kernel */
    SYS_MISSED = 16,
    SYS_MAPS_LOST, /* records of what processes map, which the kernel had no room for */
    SYS_UNTRUSTED, /* marked frames of user stacks, counted when they are named; none is lost */
    SYS_NAMELESS,  /* frames of user stacks with an unknown mapping; none is lost */
    SYS_COUNTS     /* the rest are a tool's own, from SYS_COUNT_OWN */
};
#define SYS_COUNT_OWN 8

/** A cgroup that was removed: its path from the root of its hierarchy, which is cut if it is longer. */
#define SYS_CGROUP_PATH_BYTES 384
struct sys_cgroup_gone {
    char path[SYS_CGROUP_PATH_BYTES];
};

/** The task that was running. */
struct sys_task {
    __u64 cgroup; /* its kernfs id, see config.cgroup_v1 */
    __u32 pid, tid, uid;
    __u32 reserved;
    char comm[SYS_COMM_BYTES];
};

/** The beginning of every event. */
struct sys_event {
    __u64 time_ns; /* CLOCK_MONOTONIC */
    struct sys_task task;
    __s32 kernel_stack,
        user_stack; /* SYS_NO_STACK, another error below 0, or a number in the table of stacks */
};

/** A row's histogram: slot 0 counts the values 0 and 1, slot i those from 2^i to below 2^(i + 1), the last
 * slot all larger ones. */
#define SYS_SLOTS 44
struct sys_histogram {
    __u64 slots[SYS_SLOTS];
};

/**
 * The part of a row behind the tool's own values, which end at a multiple of 8 bytes. Parts at the end that
 * are not requested take no room: config gives the length of a table's values.
 */
struct sys_row_tail {
    volatile __u64 busy; /* a program is adding to it */
    __u64 cgroup;        /* as in struct sys_task: the cgroup when the row was made; 0: not requested */
    struct sys_histogram histogram;
};

/** With --sample, user stacks are numbers of samples; see struct sys_sample. */
#define SYS_STACK_SAMPLED     (1 << 30)
#define SYS_STACK_OF_KERNEL   (1 << 29) /* with the above: in a thread of the kernel, which has no user stack */
#define SYS_SAMPLE_NUMBERS    (1 << 29) /* then they begin anew */
#define SYS_STACK_NOT_SAMPLED (-1000)   /* no error: this event was not sampled */
#define SYS_STACK_NONE        (-1001)   /* it was sampled, and there is no user stack */
#define SYS_STACK_LOST        (-1002)   /* it was sampled, and the sample was lost */

struct sys_frames {
    __u64 ip[SYS_STACK_DEPTH]; /* innermost first; 0 after the last */
};

enum sys_stack_state { SYS_STACK_FREE, SYS_STACK_WRITTEN, SYS_STACK_READY };

/** A slot of the table of stacks. */
struct sys_stack {
    /* enum sys_stack_state; the CPU that has set SYS_STACK_WRITTEN owns the slot until it is ready */
    __u32 state;
    __u32 n; /* frames */
    __u64 hash;
    struct sys_frames frames;
};

/**
 * Bytes of a process's memory from address `from` on. The bytes of pages that could not be read mean nothing.
 */
struct sys_run {
    __u64 from;
    __u32 bytes;
    __u32 missing; /* bit i: page i after that of `from` */
};

#define SYS_SAMPLE_RUNS       2u
#define SYS_SAMPLE_REGS       17u
#define SYS_SAMPLE_PAGES      16u /* of 4 KiB; the most in all runs together */
#define SYS_SAMPLE_BYTES      (SYS_SAMPLE_PAGES * 4096u)
#define SYS_SAMPLE_RING_BYTES (8u << 20)

/**
 * A copied user stack: registers, and the bytes from the stack pointer on. The bytes follow, run by run:
 * those of the signal stack, if the thread is on one, and those of the stack that the signal interrupted.
 */
struct sys_sample {
    __u64 time_ns;
    __u32 pid, number; /* of the sample */
    /* address of the program's arguments, written by the kernel: its stack begins there */
    __u64 arguments;
    __u64 regs[SYS_SAMPLE_REGS]; /* by DWARF number; the last one is the pc */
    struct sys_run run[SYS_SAMPLE_RUNS];
};

#endif
