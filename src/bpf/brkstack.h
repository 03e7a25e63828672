/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_BRKSTACK_H
#define BPF_BRKSTACK_H

/* Rows of `allium sys brkstack`: calls of brk(), which moves the end of the heap. */

#include "bpf/call.h"

/** Parts of the key of rows, in the order in which they lie in it. */
enum brkstack_part {
    BRKSTACK_BY_COMM = 1u << 0,
    BRKSTACK_BY_PROCESS = 1u << 1,
    BRKSTACK_BY_STACK = 1u << 2,
};

struct brkstack_key {
    char comm[SYS_COMM_BYTES];
    __u32 pid;
    __u32 reserved;
    __s32 kernel_stack, user_stack;
};

struct brkstack_sum {
    __u64 calls;
    __u64 queries; /* calls that only ask where the heap ends */
    __u64 failed;
    __u64 grown_bytes, shrunk_bytes; /* as asked for, not in whole pages */
    __u64 duration_ns;
    __u64 time_ns; /* of the latest call */
};

#endif
