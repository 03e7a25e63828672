/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SYSCALL_H
#define BASE_SYSCALL_H

/*
 * System calls without libc: no errno, no cancellation point, nothing another preloaded library could have wrapped.
 *
 * Runs in: target, on its cold paths only. Threads: any, signal handlers included.
 * Each returns the kernel's answer: a value, or -errno.
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
 * Is there memory at that address that can be read? rt_sigprocmask with an invalid `how` answers EINVAL, and not EFAULT: it copies the set
 * before it looks at how.
 */
static inline int sys_can_read(const void *at)
{
    return sys_call(SYS_rt_sigprocmask, ~0, at, 0, 8) == -EINVAL;
}

/** True when the answer is an error number (-4095..-1). */
static inline int sys_failed(long answer)
{
    return (unsigned long)answer > -4096UL;
}

#endif
