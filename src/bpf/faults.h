/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_FAULTS_H
#define BPF_FAULTS_H

/*
 * Rows of `allium sys faults`: page faults by who had them, or where.
 */

#include "bpf/sys.h"

/** Parts of the key, in the order in which they lie in it. */
enum faults_part {
    FAULTS_BY_PROCESS = 1u << 0,
    FAULTS_BY_PLACE = 1u << 1,
    FAULTS_BY_STACK = 1u << 2,
    FAULTS_BY_FILE = 1u << 3,
};

struct faults_file {
    __u64 inode; /* 0: no file */
    __u32 device;
    __u32 class; /* enum faults_mark */
};

struct faults_key {
    __u32 pid, in_kernel; /* the latter with the place only */
    char comm[SYS_COMM_BYTES];
    __u64 place; /* the instruction */
    __s32 kernel_stack, user_stack;
    struct faults_file file;
};

/** What a fault was: one of each group. */
enum faults_mark {
    FAULTS_MINOR, /* where a rung sees only beginnings: all of them */
    FAULTS_MAJOR, /* it had to wait for a disk */

    FAULTS_USER,   /* the program touched the memory */
    FAULTS_KERNEL, /* the kernel did, in a system call of the program's */
    FAULTS_ASKED,  /* nobody did: it was wanted in advance, or pinned */

    FAULTS_READ,
    FAULTS_WRITE,
    FAULTS_EXECUTE,
    FAULTS_ACCESS_UNKNOWN,

    FAULTS_HEAP,
    FAULTS_STACK,
    FAULTS_ANONYMOUS,
    FAULTS_FILE,
    FAULTS_SHARED,
    FAULTS_HUGETLB,
    FAULTS_OTHER,         /* vdso; nothing that was found */
    FAULTS_CLASS_UNKNOWN, /* this kernel does not let it be found */

    FAULTS_MARKS
};
#define FAULTS_KINDS    (3u << FAULTS_MINOR)
#define FAULTS_MODES    (7u << FAULTS_USER)
#define FAULTS_ACCESSES (15u << FAULTS_READ)
#define FAULTS_CLASSES  (255u << FAULTS_HEAP)

struct faults_value {
    __u64 marked[FAULTS_MARKS];
    __u64 time_ns; /* of the latest, where code is told: it has names at that time */
};

/** How a thread's last fault began, as far as the end does not tell. */
struct faults_begun {
    __u64 time_ns; /* CLOCK_MONOTONIC; 0: not asked for */
    __u32 tid;
    __u32 access; /* enum faults_mark */
};
#define FAULTS_THREADS 65536u /* two whose numbers differ by a multiple of that are in each other's way */

#define FAULTS_NAME_BYTES 64
#define FAULTS_NAME_PARTS 6
/** The end of a file's path, its last part first; "" after the root. */
struct faults_name {
    char part[FAULTS_NAME_PARTS][FAULTS_NAME_BYTES];
};

/** What a process had resident when it was last seen to change. */
struct faults_resident {
    __u64 bytes[4]; /* by the kernel's MM_*: file, anonymous, swapped, shared */
    __u64 began_ns; /* the process: CLOCK_MONOTONIC */
    __u32 mm_id;
    __u32 seen;  /* bits: of bytes[] */
    __u32 fresh; /* what was not seen is 0 */
    __u32 reserved;
    char comm[SYS_COMM_BYTES]; /* whose row it stands in, where a process has several */
};

enum faults_count {
    FAULTS_NAMES_FULL = SYS_COUNT_OWN, /* faults in files for whose names there was no room */
};

#endif
