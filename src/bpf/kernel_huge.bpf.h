/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KERNEL_HUGE_H
#define BPF_KERNEL_HUGE_H

/*
 * The kernel's types around huge pages, as in kernel.h: names and members are looked up in the BTF of the kernel that
 * runs.
 *
 * Runs in: the kernel. A part of kernel.h for tools that show huge pages.
 */

#include "bpf/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct trace_event_raw_signal_generate {
    int sig;
    int pid; /* the thread */
};

struct trace_event_raw_mm_khugepaged_scan_pmd {
    const struct mm_struct *mm;
    int status;
};

struct trace_event_raw_mm_khugepaged_scan_file {
    const struct mm_struct *mm;
    int result;
};

#pragma clang attribute pop

/* x86: an entry of the second level of page tables maps a huge page. */
enum { X86_PAGE_PSE = 0x80 };
enum { KERNEL_SIGBUS = 7 };
enum scan_result { SCAN_SUCCEED = 1 };
#endif
