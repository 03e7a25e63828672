/* SPDX-License-Identifier: BSD-2-Clause */
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "agent/clock.h"
#include "agent/cold.h"

/*
 * A program that enters seccomp may die of the first system call its filter does not know. Both ways in through libc
 * are watched; after that the ledger does not grow any more.
 */

/* Declared without "...": the arguments are passed on in their registers either way. */
EXPORT int allium_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
                        unsigned long d) __asm__("prctl");
EXPORT long allium_syscall(long nr, long a, long b, long c, long d, long e, long f) __asm__("syscall");

int allium_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    if (unlikely(!next.prctl))
        boot_agent();
    if (unlikely(option == PR_SET_SECCOMP))
        process_seal();
    /* Both make rdtsc fault, in the vdso too. */
    if (unlikely((option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT) ||
                 (option == PR_SET_TSC && a == PR_TSC_SIGSEGV)))
        clock_freeze();
    return next.prctl(option, a, b, c, d);
}

long allium_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
    if (unlikely(!next.syscall))
        boot_agent();
    if (unlikely(nr == SYS_seccomp || (nr == SYS_prctl && a == PR_SET_SECCOMP)))
        process_seal();
    if (unlikely((nr == SYS_seccomp && a == SECCOMP_SET_MODE_STRICT) ||
                 (nr == SYS_prctl && ((a == PR_SET_SECCOMP && b == SECCOMP_MODE_STRICT) ||
                                      (a == PR_SET_TSC && b == PR_TSC_SIGSEGV)))))
        clock_freeze();
    return next.syscall(nr, a, b, c, d, e, f);
}
