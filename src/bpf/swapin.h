/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_SWAPIN_H
#define BPF_SWAPIN_H

/* Rows of `allium sys swapin`: pages that are read from swap, and the page faults that wait for them. */

#include "bpf/sys.h"

/** Parts of the key, in the order in which they lie in it. */
enum swapin_part {
    SWAPIN_BY_PROCESS = 1u << 0,
    SWAPIN_BY_COMM = 1u << 1,
    SWAPIN_BY_DEVICE = 1u << 2,
    SWAPIN_BY_CGROUP = 1u << 3,
};

/** The file of a swap area, as swapon(8) got it: a block device's node, or a regular file. */
struct swapin_file {
    __u64 inode; /* 0: not known */
    __u32 device;
    __u32 reserved;
};

struct swapin_key {
    __u32 pid, reserved;
    char comm[SYS_COMM_BYTES];
    struct swapin_file file;
    __u64 cgroup;
};

/** The place that a page was read from. */
enum swapin_source {
    SWAPIN_DEVICE,  /* a disk or a file */
    SWAPIN_ZRAM,    /* a compressed block device in memory */
    SWAPIN_ZSWAP,   /* the compressed cache before a device */
    SWAPIN_ZERO,    /* nothing was read: the kernel knew that the page was zero */
    SWAPIN_BLOCK,   /* a device or zram; the attach method cannot tell which */
    SWAPIN_UNKNOWN, /* zswap or zero; the attach method cannot tell which */
    SWAPIN_SOURCES
};

struct swapin_value {
    __u64 faults; /* page faults for pages of swap */
    __u64 cached; /* of these: the page was in the swap cache already */
    __u64 pages[SWAPIN_SOURCES];
    __u64 read_ahead; /* of these pages: read during a fault, beside the page that the fault needed */
    __u64 no_fault;   /* ... : read while the thread was in no fault for swap */
    __u64 timed;      /* of the faults */
    __u64 duration_ns, longest_ns;
    __u64 delays, delay_ns; /* by the kernel's delay accounting */
};

/** A thread, from the begin of a fault to its end. */
struct swapin_thread {
    __u64 began_ns; /* CLOCK_MONOTONIC; 0: not known */
    __u64 address;
    __u64 folio;    /* that is being read */
    __u64 entry;    /* of that folio: area and offset */
    __u64 delay_ns; /* of the thread's delay accounting when the fault began */
    __u32 delays, has_delays;
    __u32 tid;
    __u32 pages;   /* read since the fault began */
    __u32 reading; /* pages of the folio that is being read; 0: none */
    __s32 area;    /* -1: not known, or the fault is for no page of swap */
    __u16 source;  /* enum swapin_source, of the folio */
    __u8 in_fault;
    __u8 retried;   /* the fault ended in order to be tried again */
    __u8 is_shared; /* a fault of shared memory */
    __u8 major;
    __s8 member; /* enum of the kernel: the counter of resident memory that changed last; -1: none */
    __u8 reserved;
    /* before 6.2: the thread's own part of these counters when the fault began */
    __s32 rss_events, rss_swapped, rss_shared;
    __u32 reserved_too;
};
#define SWAPIN_THREADS 32768u /* threads whose numbers differ by a multiple of this share an entry */

enum swapin_count {
    SWAPIN_BEGUN_BEFORE = SYS_COUNT_OWN, /* faults whose begin was not seen */
    SWAPIN_END_MISSED,                   /* faults whose end was not seen: counted, without their duration */
    SWAPIN_UNDER_WAY,                    /* faults that had not ended at the end */
    SWAPIN_REPLACED,                     /* faults that another thread with the same entry replaced */
};

#endif
