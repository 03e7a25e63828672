/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

/*
 * Calls that may never return, because they ask a stranger: the memory map of a process that keeps it locked, a file
 * system that nobody serves. They run in a thread of their own; one that does not come back is left behind, with what
 * it has, and ends with us: the kernel waits for such things so that a kill ends it.
 *
 * Runs in: the tool. Threads: any.
 */

#include <stddef.h>

/** Must not touch anything but `*work`, and may be left in its midst. */
typedef void guarded_fn(void *work);

/**
 * Runs call(copy) on a copy of the `bytes` of `*work`, and copies it back. 0; or -ETIMEDOUT: it waits for something,
 * and has done so for so many ms; `*work` is as it was. What only waits for a processor gets up to ten seconds more.
 * Where no thread can be had it is called as it is.
 */
int guard_run(guarded_fn *call, void *work, size_t bytes, unsigned ms);

#endif
