/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_TRACE_BUDGET_H
#define RUN_TRACE_BUDGET_H

/*
 * How much may be written into the folder of a trace: up to a limit, and only while its file system keeps some space
 * free. Without a limit given, it is 4 GiB or a quarter of the free space, the smaller. What stays free is 1 GiB, or
 * half of what was free at the beginning, the smaller.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include <stdbool.h>
#include <stdint.h>

enum trace_stop {
    TRACE_GOES_ON,
    TRACE_AT_LIMIT,   /* the folder is as large as it may be */
    TRACE_NO_SPACE,   /* the file system has too little free space, or none */
    TRACE_BROKEN,     /* writing failed for another reason */
    TRACE_TIME_IS_UP, /* --duration */
};

struct trace_budget {
    int folder; /* a descriptor on the file system; the caller's */
    uint64_t limit_bytes, spare_bytes;
    uint64_t used_bytes; /* written so far; the caller adds to it */
    uint64_t looked_ns;  /* when the free space was read last */
};

/** `limit_bytes` 0: the default. Returns 0 or -errno. */
int trace_budget_begin(struct trace_budget *b, int folder, uint64_t limit_bytes);
/** Returns TRACE_GOES_ON if `bytes` more may be written at `now_ns` (CLOCK_MONOTONIC), or why not. */
enum trace_stop trace_budget_ask(struct trace_budget *b, uint64_t bytes, uint64_t now_ns);

#endif
