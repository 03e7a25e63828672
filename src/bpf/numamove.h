/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_NUMAMOVE_H
#define BPF_NUMAMOVE_H

/* Rows of `allium sys numamove`: pages that are migrated, and tasks that are moved between nodes. */

#include "bpf/sys.h"

/** Why pages are migrated, or what happens to a task. */
enum numamove_reason {
    NUMAMOVE_COMPACTION,
    NUMAMOVE_MEMORY_FAILURE,
    NUMAMOVE_HOTPLUG,
    NUMAMOVE_SYSCALL, /* move_pages(2), migrate_pages(2) */
    NUMAMOVE_CPUSET,  /* the memory of a cpuset changes: a kernel thread does it */
    NUMAMOVE_MBIND,
    NUMAMOVE_BALANCING,
    NUMAMOVE_CONTIGUOUS, /* CMA, gigantic huge pages */
    NUMAMOVE_PIN,
    NUMAMOVE_DEMOTION,
    NUMAMOVE_DAMON,
    NUMAMOVE_REASONS_OF_PAGES,
    NUMAMOVE_TASK_MOVED = NUMAMOVE_REASONS_OF_PAGES,
    NUMAMOVE_TASK_SWAPPED,
    NUMAMOVE_TASK_STUCK,
    NUMAMOVE_REASONS,
    NUMAMOVE_UNNAMED = 1000, /* plus the kernel's number: a reason that is not in this list */
};

enum numamove_part {
    NUMAMOVE_BY_OWNER = 1u << 0,
    NUMAMOVE_BY_PROCESS = 1u << 1,
    NUMAMOVE_BY_COMM = 1u << 2,
};

enum numamove_owner_kind {
    NUMAMOVE_NOBODY, /* not known, or in no address space */
    NUMAMOVE_PROCESS,
    NUMAMOVE_NUMBER, /* a process or thread by the number that a system call was given; the tool finds the process */
    NUMAMOVE_SHARED, /* in address spaces of several processes */
};

/** The process whose pages are migrated, or whose task is moved. */
struct numamove_owner {
    __u32 kind; /* enum numamove_owner_kind */
    __u32 pid;
    char comm[SYS_COMM_BYTES];
};

#define NUMAMOVE_NO_NODE (-1)

/** Parts of the key, in the order in which they are requested. */
struct numamove_key {
    __u32 reason;   /* enum numamove_reason */
    __s16 from, to; /* nodes; NUMAMOVE_NO_NODE: not known */
    struct numamove_owner owner;
    __u32 pid, reserved;
    char comm[SYS_COMM_BYTES];
};

struct numamove_value {
    __u64 calls;                    /* of migrate_pages() in the kernel */
    __u64 timed;                    /* of these, those whose begin was seen */
    __u64 pages, failed;            /* as pgmigrate_success and pgmigrate_fail of /proc/vmstat */
    __u64 huge, huge_failed, split; /* transparent huge pages */
    __u64 pinned, writeback;        /* parts of `failed` */
    __u64 no_memory;                /* calls that ended since the destination had no free memory */
    __u64 tasks;
    __u64 duration_ns, longest_ns;
};

/** What the kernel tells of a call when the call ends. */
struct numamove_told {
    __u64 succeeded, failed, huge, huge_failed, split;
    __s32 reason, reserved;
};

/** A folio that has moved, until the next one does: its owners become known after it moved. */
struct numamove_folio {
    __u64 address; /* of the new one; 0: there is none */
    __u64 mm;      /* the first address space that has it; 0: none was seen */
    __u32 pages;
    __s16 from, to;
    struct numamove_owner owner;
};

/** A call under way. */
struct numamove_call {
    __u64 began_ns;
    __u64 list;                  /* of the folios to be migrated; 0: not known */
    __u32 reason, several;       /* several: its pages belong to more than one row */
    struct numamove_owner asked; /* the process that the pages must belong to, whoever maps them */
    struct numamove_folio folio;
    /* folios of one row, until one comes that belongs to another row */
    struct numamove_owner owner;
    __s16 from, to;
    __u32 reserved;
    __u64 pages, written; /* of them; and pages that were added to rows before */
};

#define NUMAMOVE_LEVELS 4u /* a power of two: a call may allocate memory, and so compact memory */

/** Calls of a thread, each within the one before. */
struct numamove_task {
    __u32 depth, reserved;
    struct numamove_call call[NUMAMOVE_LEVELS];
    struct numamove_key last; /* the row of the last call that has ended, for what its return tells */
};

#define NUMAMOVE_CPUS_MAX 1024u

/** The tool's own counts. */
enum numamove_count {
    NUMAMOVE_UNTIMED = SYS_COUNT_OWN, /* calls whose begin was not seen: their time is not known */
    NUMAMOVE_UNDER_WAY,               /* calls that had not ended when the tool did */
};

#endif
