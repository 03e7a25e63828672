/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_FAULTS_H
#define BPF_FAULTS_H

/* Rows of `allium sys faults`: page faults by process and by place. */

#include "bpf/process_mapping.h"
#include "bpf/sys.h"

/** Parts of the key, in the order in which they lie in it. */
enum faults_part {
    FAULTS_BY_PROCESS = 1u << 0,
    FAULTS_BY_PLACE = 1u << 1,
    FAULTS_BY_STACK = 1u << 2,
    FAULTS_BY_FILE = 1u << 3,
    FAULTS_BY_COMM = 1u << 4,
};

struct faults_key {
    __u32 pid, in_kernel; /* in_kernel: only together with `place` */
    char comm[SYS_COMM_BYTES];
    __u64 place; /* address of the instruction */
    __s32 kernel_stack, user_stack;
    struct process_mapping file;
};

/** The marks of a fault: one of each group. */
enum faults_mark {
    FAULTS_MINOR, /* includes all faults if an attach method sees only their beginnings */
    FAULTS_MAJOR, /* the fault waited for a disk */

    FAULTS_USER,   /* the program touched the memory */
    FAULTS_KERNEL, /* the kernel touched it, in a system call of the program */
    FAULTS_ASKED,  /* nothing touched it: the page was requested in advance, or pinned */

    FAULTS_READ,
    FAULTS_WRITE,
    FAULTS_EXECUTE,
    FAULTS_ACCESS_UNKNOWN,

    FAULTS_CLASS, /* + enum mapping_class */

    FAULTS_MARKS = FAULTS_CLASS + MAPPING_CLASSES
};
#define FAULTS_KINDS    (3u << FAULTS_MINOR)
#define FAULTS_MODES    (7u << FAULTS_USER)
#define FAULTS_ACCESSES (15u << FAULTS_READ)
#define FAULTS_CLASSES  (255u << FAULTS_CLASS)

struct faults_value {
    __u64 marked[FAULTS_MARKS];
    __u64 brought_in, read_ahead; /* pages of the file, by file: see fault_pages.bpf.h */
    __u64 time_ns; /* of the latest fault, if code is shown: its names are those of that time */
};

/** The facts from the beginning of a thread's last fault that the end does not have. */
struct faults_begun {
    __u64 time_ns; /* CLOCK_MONOTONIC; 0: not requested */
    __u32 tid;
    __u32 access; /* enum faults_mark */
};
#define FAULTS_THREADS 65536u /* threads whose numbers differ by a multiple of this share an entry */

/** A thread's last fault, while the pages of its file are read. */
struct faults_reading {
    __u64 address; /* 0: the fault has ended */
    __u64 pages;   /* the file's struct address_space, or 0: not looked up yet */
    __u64 index;   /* the page in the file that the fault asks for */
    __u32 tid;
    __u32 brought_in, read_ahead; /* pages */
    __u32 reserved;
};

/** The resident memory of a process after the last change. */
struct faults_resident {
    __u64 bytes[4]; /* by the kernel's MM_*: file, anonymous, swapped, shared */
    __u64 began_ns; /* the process: CLOCK_MONOTONIC */
    __u32 mm_id;
    __u32 seen;  /* bits: which of bytes[] are known */
    __u32 fresh; /* values that are not known are 0 */
    __u32 reserved;
    char comm[SYS_COMM_BYTES]; /* name in the row, if a process has several */
};

enum faults_count {
    FAULTS_PAGES_UNKNOWN = SYS_COUNT_OWN, /* faults whose pages were not seen: begun before the tool was */
};

#endif
