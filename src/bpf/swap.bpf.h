/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_SWAP_BPF_H
#define BPF_SWAP_BPF_H

/*
 * Areas of swap, and pages that are read from them.
 *
 * Runs in: the kernel.
 */
#include "bpf/sys.bpf.h"

/* The kernel's types, as in kernel.h. */
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

/* Of /proc/vmstat. */
enum vm_event_item { PSWPIN, PGFAULT, PGMAJFAULT, SWPIN_ZERO, ZSWPIN };

enum pageflags___uptodate { PG_uptodate = 3 };

#pragma clang attribute pop

/* Address of the kernel's array of swap areas. */
const volatile __u64 swap_info_address = 0;

/* An entry of swap: the area's number in the upper bits, and the page's offset in the area (mm/swapops.h). */
enum { ENTRY_AREA_SHIFT = 58 };
/* In a page table of x86 the area has 5 bits at another place. */
enum { PTE_AREA_SHIFT = 59 };
/* Larger numbers of areas mean no swap: pages that are being moved, are damaged, or belong to a device. The number of
 * areas depends on the kernel's configuration, and is not smaller than this. */
enum { AREAS_MAX = 23 };

static __always_inline const struct swap_info_struct *area_info(__s32 area)
{
    const struct swap_info_struct *info = NULL;
    if (swap_info_address && area >= 0 && area < AREAS_MAX)
        bpf_probe_read_kernel(&info, sizeof(info),
                              (const void *)(swap_info_address + (__u64)area * sizeof(info)));
    return info;
}

/* Flags are the first word of a folio, and of a page before there were folios. */
static __always_inline bool has_flag(__u64 folio, __u32 flag)
{
    __u64 flags = 0;
    bpf_probe_read_kernel(&flags, sizeof(flags), (const void *)folio);
    return flags >> (flag & 63) & 1;
}

static __always_inline __u32 pages_of(__u64 folio)
{
    if (!has_flag(folio, bpf_core_enum_value(enum pageflags, PG_head)))
        return 1;
    return 1u << (BPF_CORE_READ((const struct folio *)folio, _flags_1) &
                  31); /* the order is in the lowest bits */
}

static __always_inline bool is_zero(const struct swap_info_struct *info, __u64 offset)
{
    unsigned long word = 0;
    if (!bpf_core_field_exists(info->zeromap))
        return false;
    const unsigned long *map = BPF_CORE_READ(info, zeromap);
    if (map)
        bpf_probe_read_kernel(&word, sizeof(word), &map[offset / 64]);
    return word >> (offset % 64) & 1;
}

static __always_inline bool is_zram(const struct swap_info_struct *info)
{
    char name[4] = {0};
    const struct gendisk *disk = BPF_CORE_READ(info, bdev, bd_disk);
    bpf_probe_read_kernel(name, sizeof(name), &disk->disk_name);
    return name[0] == 'z' && name[1] == 'r' && name[2] == 'a' && name[3] == 'm';
}

#endif
