/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_LRU_BPF_H
#define BPF_LRU_BPF_H

/*
 * Of which list of pages mm_vmscan_lru_isolate speaks. Before 6.8 it had one argument more.
 *
 * Runs in: the kernel.
 */

#include "bpf/sys.bpf.h"

/** The argument `lru` of the event, by its position. */
static __always_inline __u32 lru_argument(const __u64 *ctx)
{
    __u64 lru;
    /* Each arm with an instruction of its own: the compiler would choose an address first, which the verifier refuses. */
    if (bpf_core_field_exists(struct trace_event_raw_mm_vmscan_lru_isolate, isolate_mode))
        asm volatile("%0 = *(u64 *)(%1 + 56)" : "=r"(lru) : "r"(ctx));
    else
        asm volatile("%0 = *(u64 *)(%1 + 48)" : "=r"(lru) : "r"(ctx));
    return (__u32)lru;
}

/** 0: inactive anonymous pages, 1: inactive pages of files, -1: another list. */
static __always_inline int lru_inactive(__u32 lru)
{
    if (lru == bpf_core_enum_value(enum lru_list___kernel, LRU_INACTIVE_ANON))
        return 0;
    return lru == bpf_core_enum_value(enum lru_list___kernel, LRU_INACTIVE_FILE) ? 1 : -1;
}

#endif
