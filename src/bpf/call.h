/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_CALL_H
#define BPF_CALL_H

/* System calls from their entry to their exit. See call.bpf.h. */

#include "bpf/sys.h"

/** The last call that a thread has entered. */
struct call_begun {
    __u64 began_ns; /* CLOCK_MONOTONIC; 0: it has ended */
    __u32 tid;      /* of the kernel */
    __s32 number;
    __u64 kept[4]; /* the tool's: data that is gone when the call returns */
};
#define CALL_THREADS 65536u /* threads whose numbers differ by a multiple of this share an entry */

/** Counts of all tools that follow calls. A tool's own ones begin at CALL_COUNT_OWN. */
enum call_count {
    CALL_BEGUN_BEFORE = SYS_COUNT_OWN, /* whose entry was not seen */
    CALL_UNDER_WAY,                    /* had not ended when the tool did */
    CALL_OF_32_BITS,                   /* of programs of 32 bits: not shown */
    CALL_COUNT_OWN
};

/** For the `counted` of a tool. */
#define CALL_COUNTED                                                                                         \
    {CALL_BEGUN_BEFORE, "call{s} had begun before the tool, left out", "begun_before", false},               \
        {CALL_UNDER_WAY, "call{s} had not ended at the end", "under_way", false},                            \
    {                                                                                                        \
        CALL_OF_32_BITS, "call{s} of {a program|programs} of 32 bits, left out", "calls_of_32_bits", true    \
    }

#endif
