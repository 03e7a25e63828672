/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_RSEQ_THREAD_H
#define TARGET_RSEQ_THREAD_H

/*
 * Whether the kernel knows a thread's struct rseq, so that it aborts the thread's restartable sequences (rseq(2)).
 *
 * Runs in: target.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/sigsafe/syscall.h"

#define RSEQ_SIGNATURE  0x53053053
#define RSEQ_BYTES      32 /* of struct rseq, as libc registers it */
#define RSEQ_UNREGISTER 1

/**
 * Returns whether the calling thread is registered. `area`: the offset of libc's struct rseq from the thread pointer;
 * 0: libc registers no thread. If a thread was made by clone(2), and not by libc, its struct rseq may look registered
 * although it is not. In this case the function registers it and at once undoes that, by which the kernel marks it as
 * unregistered.
 */
static inline bool rseq_thread_is_registered(ptrdiff_t area)
{
    char *place = (char *)__builtin_thread_pointer() + area;
    if (!area)
        return false;
    if (sys_failed(sys_call(SYS_rseq, place, RSEQ_BYTES, 0, RSEQ_SIGNATURE)))
        return true; /* EBUSY: registered. If libc could not register it, its struct rseq says so */
    sys_call(SYS_rseq, place, RSEQ_BYTES, RSEQ_UNREGISTER, RSEQ_SIGNATURE);
    return false;
}

#endif
