/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_MEM_PROFILING_H
#define BENCH_MEM_PROFILING_H

/*
 * The switch of the kernel's memory allocation profiling, vm.mem_profiling (Linux 6.10 and later, with
 * CONFIG_MEM_ALLOC_PROFILING).
 *
 * Runs in: the tool, as root. Threads: one. Owns: nothing; the caller restores the switch.
 */

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

#define MEM_PROFILING_PROC "/proc"

struct mem_profiling {
    char path[PATH_MAX]; /* of the switch; "": it cannot be switched here */
    char before;         /* '0' or '1' */
};

/**
 * Reads the switch below `proc`. Returns 0; or -EOPNOTSUPP with a line, if the kernel has no profiling, or was booted
 * with "never"; -EACCES: the switch cannot be written.
 */
int mem_profiling_open(struct mem_profiling *p, const char *proc, struct error *e);
/** Returns 0 or -errno. */
int mem_profiling_set(const struct mem_profiling *p, bool on);
/** Sets what the switch was when it was opened. Does nothing if it cannot be switched. */
void mem_profiling_restore(const struct mem_profiling *p);

#endif
