/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_MMAPSNOOP_H
#define BPF_MMAPSNOOP_H

/* Events and rows of `allium sys mmapsnoop`: an address space has changed, or should have. */

#include "bpf/call.h"
#include "bpf/process_mapping.h"

/** (name of the call, its number on x86-64) */
/* clang-format off */
#define MMAPSNOOP_CALLS(X)                                                                                           \
    X(mmap, 9) X(mprotect, 10) X(munmap, 11) X(brk, 12) X(mremap, 25) X(madvise, 28) X(shmat, 30) X(shmdt, 67)       \
    X(mlock, 149) X(munlock, 150) X(mlockall, 151) X(munlockall, 152) X(remap_file_pages, 216) X(mlock2, 325)        \
    X(pkey_mprotect, 329) X(process_madvise, 440) X(mseal, 462)
/* clang-format on */

enum mmapsnoop_call {
#define MMAPSNOOP_CALL(name, number) MMAPSNOOP_##name,
    MMAPSNOOP_CALLS(MMAPSNOOP_CALL)
#undef MMAPSNOOP_CALL
        MMAPSNOOP_exec, /* no calls: a new address space, */
    MMAPSNOOP_exit,     /* ... and the end of one */
    MMAPSNOOP_KINDS
};

struct mmapsnoop_change {
    /* The arguments; after mmap(), mremap() or shmat(), the resulting range; of process_madvise(), the bytes done. */
    __u64 address, bytes;
    __u64 old_address, old_bytes;
    __u64 offset;
    __s64 result;
    __u64 mapped_bytes, unmapped_bytes; /* by which the address space has grown and shrunk */
    __u32 call;                         /* enum mmapsnoop_call */
    __u32 prot;
    __u32 flags; /* also advice */
    __s32 fd;    /* also the identifier of a segment */
    struct process_mapping mapping;
};

struct mmapsnoop_event {
    struct sys_event head; /* of the end of the call */
    __u64 duration_ns;     /* 0: not known */
    struct mmapsnoop_change change;
};

/** Parts of a row's key, see --by. */
enum mmapsnoop_part {
    MMAPSNOOP_BY_PROCESS = 1u << 0,
    MMAPSNOOP_BY_COMM = 1u << 1,
    MMAPSNOOP_BY_CALL = 1u << 2,
    MMAPSNOOP_BY_FILE = 1u << 3,
    MMAPSNOOP_BY_STACK = 1u << 4,
    MMAPSNOOP_IN_ROWS = 1u << 5, /* set by all parts: rows, not events */
};

struct mmapsnoop_key {
    char comm[SYS_COMM_BYTES];
    __u32 pid, call;
    struct process_mapping mapping;
    __s32 kernel_stack, user_stack;
};

struct mmapsnoop_sum {
    __u64 calls, failed, mapped_bytes, unmapped_bytes, duration_ns;
    __u64 time_ns; /* of the latest one, if code is shown: its names are those of that time */
};

#endif
