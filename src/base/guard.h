/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

/*
 * Runs calls that may never return because they wait in the kernel: a read of the memory map of a process that holds
 * its mmap lock, or of a file system whose server does not answer. The calls of a thread run in a helper thread. If a
 * call does not return in time, its helper is abandoned with its memory, and ends together with the tool, because a
 * kill ends such waits.
 *
 * Runs in: the tool. Threads: any.
 */

#include <stddef.h>
#include <stdint.h>

/** A call. It may use no memory but `*work`, because its thread may be abandoned at any point. */
typedef void guarded_fn(void *work);

/**
 * Runs call(copy) on a copy of the `bytes` of `*work`, and copies the result back. Returns 0; or -ETIMEDOUT, with
 * `*work` unchanged, if the call has not returned after `ms` and sleeps. A call that waits for a processor gets up to
 * ten seconds more. If no thread can be started, the call runs in the calling thread.
 */
int guard_run(guarded_fn *call, void *work, size_t bytes, unsigned ms);

/** Returns the processor time that the helper thread of the calling thread has used; 0: there is no helper yet. */
uint64_t guard_cpu_ns(void);

#endif
