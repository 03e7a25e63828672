/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_HIT_H
#define BPF_HIT_H

/* What the programs of `allium bench` (hit.bpf.c) and the command share. */

#ifndef __BPF__
#include <linux/types.h>
#endif

struct hit_config {
    __u32 pid;     /* the process whose system calls are wanted, */
    __u32 syscall; /* and which of them */
};

/** An event, as a small tracer records it. */
struct hit_record {
    __u64 time_ns; /* CLOCK_MONOTONIC */
    __u64 address; /* of the instruction; of a system call, its number */
    __u32 tid, cpu;
    __u64 arguments[2];
};

enum hit_count {
    HIT_SEEN,
    HIT_LOST, /* the ring was full */
    HIT_COUNTS,
};

#endif
