/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_MEMLEAK_H
#define BPF_MEMLEAK_H

/*
 * `allium sys memleak` for processes: objects that the allocator of a process has returned and that were not freed yet.
 * Fixed-width members only, and no implicit padding.
 */

#include "bpf/sys.h"

/** By what objects are grouped; only the data that is needed is recorded. */
enum memleak_part {
    MEMLEAK_BY_STACK = 1u << 0,
    MEMLEAK_BY_SITE = 1u << 1,
    MEMLEAK_BY_PROCESS = 1u << 2,
    MEMLEAK_BY_COMM = 1u << 3,
};

#define MEMLEAK_PROCESSES 4096u

/** A process whose allocator has probes. Its number is the upper half of each probe's cookie. */
struct memleak_process {
    /* a new number with each program that the process executes: addresses mean nothing in the next one */
    __u32 image;
    __u32 counts; /* 0: events are ignored; MEMLEAK_PRICED: nothing is kept */
    /* 1: only functions with MEMLEAK_REACHES call others, so that unsampled calls of the rest are not noted */
    __u32 is_flat;
    __u32 reaches;       /* some of its functions have MEMLEAK_REACHES */
    __u64 calls, nested; /* counted until is_flat is decided */
};

#define MEMLEAK_PRICED 2u

/*
 * The lower half of a cookie says which arguments of the function have a meaning: three numbers of arguments, from 0
 * on, of 4 bits each, and bits of enum memleak_kind.
 */
#define MEMLEAK_NO_ARGUMENT              15u
#define MEMLEAK_SIZE(cookie)             ((cookie)&15u)
#define MEMLEAK_TIMES(cookie)            ((cookie) >> 4 & 15u) /* the size is to be multiplied by this argument */
#define MEMLEAK_OLD(cookie)              ((cookie) >> 8 & 15u) /* the object that is replaced, or freed */
#define MEMLEAK_COOKIE(size, times, old) ((size) | (times) << 4 | (old) << 8)
enum memleak_kind {
    /* the first argument is where the result is stored; 0 is returned then */
    MEMLEAK_RESULT_STORED = 1u << 12,
    /* the end of a call is seen by probes on the instructions that return: an exception may end it, too */
    MEMLEAK_THROWS = 1u << 13,
    /* it calls another one that allocates */
    MEMLEAK_REACHES = 1u << 16,
};

/* What the kernel does with the instruction at the place, a number below MEMLEAK_PLACES. */
#define MEMLEAK_PLACES        4u
#define MEMLEAK_PLACE(cookie) ((cookie) >> 14 & (MEMLEAK_PLACES - 1))
#define MEMLEAK_AT(place)     ((__u32)(place) << 14)

/** A live object is known by its address in its image. */
struct memleak_address {
    __u64 address;
    __u32 image;
    __u32 reserved;
};

struct memleak_object {
    __u64 bytes; /* as requested */
    __u64 time_ns;
    __u64 site; /* the address behind the call */
    __s32 stack;
    __u32 pid;
};

/** What a CPU has counted; the tool adds them up. */
struct memleak_cpu {
    __s64 left;    /* bytes until the next sample */
    __u64 freed;   /* the address of the object that was freed last */
    __u64 returns; /* hits of probes */
    __u64 calls[MEMLEAK_PLACES], frees[MEMLEAK_PLACES];
};

enum memleak_event {
    MEMLEAK_FORKED = 1, /* `pid` is the child of a process with probes */
    MEMLEAK_EXECUTED,   /* `pid` runs another program now */
    MEMLEAK_APPEARED,   /* `pid` fits the filters, and has no probes */
    MEMLEAK_LOADED,     /* a library was loaded or unloaded */
    MEMLEAK_ENDED,
};

/** What the tool is told at once. */
struct memleak_notice {
    __u32 event; /* enum memleak_event */
    __u32 pid;
    __u32 process;             /* its number, of MEMLEAK_EXECUTED, LOADED and ENDED */
    __u32 image;               /* of MEMLEAK_EXECUTED: the one that is gone */
    char comm[SYS_COMM_BYTES]; /* of the thread that it happened in */
};

/** Logarithms of the steps between 1 and 2, with so many fraction bits. */
#define MEMLEAK_LOG_STEPS 256u
#define MEMLEAK_LOG_BITS  24u

/** The tool's own counts. */
enum memleak_count {
    MEMLEAK_FREED_BEFORE =
        SYS_COUNT_OWN,    /* frees of objects from before the start; with every object alone */
    MEMLEAK_REUSED,       /* the address of a live object was returned again */
    MEMLEAK_CALLS_FULL,   /* threads in an allocator for which there was no room */
    MEMLEAK_OF_EXEC,      /* live objects of programs that exec replaced */
    MEMLEAK_NESTED,       /* calls of one function of the allocator by another one */
    MEMLEAK_NOTICES_LOST, /* processes that were not noticed */
    MEMLEAK_UNREAD,       /* results in memory that could not be read */
};

#endif
