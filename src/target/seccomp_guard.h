/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_SECCOMP_GUARD_H
#define TARGET_SECCOMP_GUARD_H

/*
 * Detects that the program enters seccomp, because the program's filter may kill it at the library's next system call.
 * Also detects that the program forbids rdtsc. A program usually does both through libc's prctl() or syscall(). Agent
 * and tag library export both functions, and call seccomp_begin() before the real function and seccomp_end() after it.
 * If the call fails (some programs only test whether the kernel accepts a filter), seccomp_end() undoes the effects of
 * seccomp_begin().
 *
 * Runs in: target. Threads: any.
 */

#include <stdbool.h>

struct seccomp_effects {
    bool seals;   /* after the call, the library may make no system call */
    bool freezes; /* after the call, rdtsc faults, also in the vdso */
};

/* ---- what each library defines ---- */

/** Called before the program's call, with the effects of the call. Returns the effects for seccomp_end() to undo. */
struct seccomp_effects seccomp_begin(struct seccomp_effects effects);
/** Called after the program's call, with the result of seccomp_begin(). If the call has failed, undoes the effects. */
void seccomp_end(struct seccomp_effects effects, bool failed);
/** Sets `seccomp_next`. Called by a hook that the program calls before `seccomp_next` is set. */
void seccomp_boot(void) __attribute__((visibility("hidden")));

/** The real functions, to which the two hooks forward the program's calls. */
struct seccomp_next {
    int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
    long (*syscall)(long, long, long, long, long, long, long);
};
extern struct seccomp_next seccomp_next __attribute__((visibility("hidden")));

#endif
