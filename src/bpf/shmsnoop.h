/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_SHMSNOOP_H
#define BPF_SHMSNOOP_H

/* Events of `allium sys shmsnoop`: shared memory is created, attached, changed or removed. */

#include "bpf/call.h"
#include "bpf/process_mapping.h"

/** (name of the call, its number on x86-64) */
#define SHMSNOOP_CALLS(X)                                                                                    \
    X(shmget, 29)                                                                                            \
    X(shmat, 30)                                                                                             \
    X(shmctl, 31)                                                                                            \
    X(shmdt, 67)                                                                                             \
    X(open, 2)                                                                                               \
    X(mmap, 9)                                                                                               \
    X(ftruncate, 77)                                                                                         \
    X(creat, 85) X(unlink, 87) X(openat, 257) X(unlinkat, 263) X(memfd_create, 319) X(openat2, 437)

enum shmsnoop_call {
#define SHMSNOOP_CALL(name, number) SHMSNOOP_##name,
    SHMSNOOP_CALLS(SHMSNOOP_CALL)
#undef SHMSNOOP_CALL
        SHMSNOOP_KINDS
};

enum shmsnoop_what {
    SHMSNOOP_SEGMENT = 1u << 0,   /* the segment is known */
    SHMSNOOP_FILE = 1u << 1,      /* the file is known, */
    SHMSNOOP_RESIDENT = 1u << 2,  /* ... and how much of segment or file is resident */
    SHMSNOOP_CREATED = 1u << 3,   /* the call has created the file */
    SHMSNOOP_DESTROYED = 1u << 4, /* the segment is gone after the call */
};

/** A segment, or a file that is shared memory, after the call. */
struct shmsnoop_segment {
    __u64 bytes, resident_bytes;
    __u32 attached; /* so many mappings, of a segment */
    __s32 id, key;
    __u32 mode; /* as the kernel keeps it: with SHM_DEST and SHM_LOCKED */
    __u32 creator;
    __u32 what;          /* enum shmsnoop_what */
    __u32 ipc_namespace; /* in which the identifier means this segment */
    __u32 reserved;
};

#define SHMSNOOP_NAME_BYTES 272u

struct shmsnoop_event {
    struct sys_event head; /* of the end of the call */
    __u64 duration_ns;     /* 0: not measured */
    __u64 address, bytes;  /* as asked for; the address where it was attached or mapped */
    __s64 result;
    __u32 call; /* enum shmsnoop_call */
    __u32 flags, mode, command;
    __s32 id, key, fd;
    __u32 prot;
    struct shmsnoop_segment segment;
    struct process_mapping mapping; /* the file */
    /* As the program gave it, of calls without an open file. */
    char name[SHMSNOOP_NAME_BYTES];
};

/** Own counts. */
enum shmsnoop_count {
    SHMSNOOP_NAME_LOST = CALL_COUNT_OWN, /* names that could not be read from the program's memory */
};

#endif
