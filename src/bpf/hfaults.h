/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_HFAULTS_H
#define BPF_HFAULTS_H

/* Rows of `allium sys hfaults`: faults that ask for huge pages, and what becomes of the huge pages. */

#include "bpf/sys.h"

/** Parts of the key, in the order in which they lie in it. */
enum hfaults_part {
    HFAULTS_BY_PROCESS = 1u << 0,
    HFAULTS_BY_COMM = 1u << 1,
    HFAULTS_BY_CLASS = 1u << 2,
    HFAULTS_BY_RESULT = 1u << 3,
    HFAULTS_BY_STACK = 1u << 4,
    HFAULTS_BY_CGROUP = 1u << 5,
};

struct hfaults_key {
    __u32 pid;
    __u32 class; /* enum mapping_class */
    char comm[SYS_COMM_BYTES];
    __u32 result; /* the kernel's enum scan_result, plus 1; 0: the row is not of a scan */
    __u32 reserved;
    __s32 kernel_stack, user_stack;
    __u64 cgroup;
};

/** What is counted. */
enum hfaults_mark {
    HFAULTS_HUGETLB_2M, /* faults that got a page of hugetlbfs, by its size */
    HFAULTS_HUGETLB_1G,
    HFAULTS_HUGETLB_OTHER,
    HFAULTS_HUGETLB_FAILED,

    HFAULTS_THP,     /* got a transparent huge page */
    HFAULTS_ZERO,    /* got the huge page of zeros, which all share */
    HFAULTS_NO_PAGE, /* got small pages: there was no free huge page */
    HFAULTS_CHARGE,  /* ... the cgroup's limit left no room for a huge page */
    HFAULTS_ASKED,   /* of all of these: nothing touched the memory */

    HFAULTS_SCANNED, /* ranges of 2 MiB that khugepaged, or MADV_COLLAPSE, looked at */
    HFAULTS_COLLAPSED,

    HFAULTS_SPLIT_PAGE,
    HFAULTS_SPLIT_MAPPING,
    HFAULTS_ZAPPED,

    HFAULTS_MARKS
};

#define HFAULTS_RESULTS_MAX 63u

struct hfaults_value {
    __u64 marked[HFAULTS_MARKS];
    __u64 results; /* bit i: a scan had the result i, other than a success */
    __u64 time_ns; /* of the latest event, with stacks: their names are those of that time */
};

enum hfaults_page {
    HFAULTS_PAGE_NONE,      /* no huge page was asked for */
    HFAULTS_PAGE_REFUSED,   /* there was none */
    HFAULTS_PAGE_GOT,       /* there was one */
    HFAULTS_PAGE_GIVEN_UP,  /* ... which was given back at once */
    HFAULTS_PAGE_UNCHARGED, /* ... and small pages were taken in its place */
};

enum hfaults_flags {
    HFAULTS_OPEN = 1u << 0,      /* a fault is under way */
    HFAULTS_OF_KERNEL = 1u << 1, /* in a system call of the program */
    HFAULTS_NO_TOUCH = 1u << 2,  /* nothing touched the memory */
    HFAULTS_WRITES = 1u << 3,
    HFAULTS_DIRECT = 1u << 4,     /* hugetlb_fault() was called without handle_mm_fault() */
    HFAULTS_ZEROS = 1u << 5,      /* the huge page of zeros was mapped */
    HFAULTS_SPLITS = 1u << 6,     /* __split_huge_pmd() is under way */
    HFAULTS_SPLITS_BIG = 1u << 7, /* a huge page is being split */
    HFAULTS_IN_HUGETLB = 1u << 8, /* together with HFAULTS_OF_KERNEL */
};

/** The fault that a thread has under way. */
struct hfaults_open {
    __u64 began_ns; /* CLOCK_MONOTONIC; 0: not requested */
    __u64 address;
    __u64 page; /* the huge page: its struct page, or its number */
    __u64 vma;  /* 0: not known */
    __u32 tid;
    __u16 flags; /* enum hfaults_flags */
    __u16 got;   /* enum hfaults_page */
};
#define HFAULTS_THREADS 65536u /* threads whose numbers differ by a multiple of this share an entry */

enum hfaults_count {
    /* huge pages that a process got and no fault asked for */
    HFAULTS_OUTSIDE = SYS_COUNT_OWN,
    HFAULTS_UNENDED, /* faults whose end was missed */
};

#endif
