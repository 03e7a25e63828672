/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KERNEL_SWAP_H
#define BPF_KERNEL_SWAP_H

/*
 * The kernel's types for swap and for the faults that need it, as in kernel.h.
 *
 * Runs in: the kernel.
 */

#include "bpf/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_delay_info { /* NULL in tasks that began while kernel.task_delayacct was 0 */
    __u64 swapin_delay;
    __u32 swapin_count;
};

/* A thread's own part of its process's counters. */
struct task_rss_stat {
    int events, count[4];
};

struct task_struct___before_6_2 {
    struct task_rss_stat rss_stat;
};

typedef struct {
    unsigned long pte;
} pte_t;

struct vm_fault {
    unsigned long address;
    pte_t orig_pte;
};

struct gendisk {
    char disk_name[32];
};

struct block_device {
    struct gendisk *bd_disk;
};

/* An area of swap. */
struct swap_info_struct {
    unsigned long *zeromap; /* since 6.12 */
    struct block_device *bdev;
    struct file *swap_file;
};

/* Since 5.16. */
struct folio {
    unsigned long _flags_1;
};

/* Of /proc/vmstat. */
enum vm_event_item { PSWPIN, PGFAULT, PGMAJFAULT, SWPIN_ZERO, ZSWPIN };

enum pageflags___folio { PG_uptodate = 3, PG_head = 6 };

#pragma clang attribute pop

#endif
