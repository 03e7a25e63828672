/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

/*
 * Runs calls that may never return because they wait for somebody else: reading the memory map of a process
 * that holds its lock, or a file system whose server does not answer. Each call runs in a thread of its own.
 * A thread that does not return is abandoned with its memory and ends together with the tool: such waits in
 * the kernel end at a kill.
 *
 * Runs in: the tool. Threads: any.
 */

#include <stddef.h>
#include <stdint.h>

/** Touches nothing but `*work`. The thread may be abandoned at any point of the function. */
typedef void guarded_fn(void *work);

/**
 * Runs call(copy) on a copy of the `bytes` of `*work`, and copies the result back. Returns 0. Returns
 * -ETIMEDOUT, with `*work` unchanged, if the call sleeps and has done so for `ms`; a call that only waits for
 * a processor gets up to ten seconds more. If no thread can be started, the call runs directly.
 */
int guard_run(guarded_fn *call, void *work, size_t bytes, unsigned ms);

/** Returns the processor time of the calling thread's helper, which runs its calls; 0: it has none yet. */
uint64_t guard_cpu_ns(void);

#endif
