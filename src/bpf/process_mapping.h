/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_PROCESS_MAPPING_H
#define BPF_PROCESS_MAPPING_H

/* What is mapped at an address of a process. See process_mapping.bpf.h. */

#include "bpf/path.h"

enum mapping_class {
    MAPPING_HEAP,
    MAPPING_STACK,
    MAPPING_ANONYMOUS,
    MAPPING_FILE,
    MAPPING_SHARED, /* of shmget(), memfd_create(), /dev/shm, MAP_SHARED|MAP_ANONYMOUS */
    MAPPING_HUGETLB,
    MAPPING_OTHER,   /* vdso, or nothing is mapped there */
    MAPPING_UNKNOWN, /* not looked up: before Linux 6.1, or of another process */
    MAPPING_CLASSES
};

struct process_mapping {
    union {
        __u64 inode;
        __u64 page_bytes; /* in its place, in a tool that asks for sizes: of hugetlbfs */
    };
    __u32 device;  /* 0: no file */
    __u16 class;   /* enum mapping_class */
    __u16 deleted; /* not 0: the file's name is gone */
};

#endif
