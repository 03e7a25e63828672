/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SYSCALL_H
#define BASE_SYSCALL_H

/*
 * System calls without libc: they do not change errno, are not cancellation points, and bypass the wrappers of other
 * preloaded libraries.
 *
 * Runs in: target, on its cold paths only. Threads: any, signal handlers included.
 * Each returns the result of the kernel: a value, or -errno.
 */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static inline long sys_call6(long nr, long a, long b, long c, long d, long e, long f)
{
    long ret;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}
#else
#error "syscall.h: this architecture has no system call sequence yet"
#endif

#define sys_call(nr, ...)                    sys_call_pick(__VA_ARGS__, 0, 0, 0, 0, 0, 0)(nr, __VA_ARGS__)
#define sys_call_pick(a, b, c, d, e, f, ...) sys_call_pad
#define sys_call_pad(nr, ...)                sys_call_args((nr), __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define sys_call_args(nr, a, b, c, d, e, f, ...)                                                             \
    sys_call6((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/**
 * Returns whether the memory at this address is readable. rt_sigprocmask() copies the set before it checks `how`: with
 * an invalid `how`, it fails with EINVAL if the memory is readable, else with EFAULT.
 */
static inline int sys_can_read(const void *at)
{
    return sys_call(SYS_rt_sigprocmask, ~0, at, 0, 8) == -EINVAL;
}

/** Returns whether the result is an error (-4095..-1). */
static inline int sys_failed(long answer)
{
    return (unsigned long)answer > -4096UL;
}

#endif
