/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_SECCOMP_GUARD_H
#define TARGET_SECCOMP_GUARD_H

/*
 * Detects that the program enters seccomp, because its filter may kill the program at our next system call. A program
 * enters seccomp through libc's prctl() or syscall(). Agent and tag library export both functions, and call
 * seccomp_begin() before the real one and seccomp_end() after it. A program may also call them only to test whether the
 * kernel accepts a filter: that call fails, and seccomp_end() undoes what seccomp_begin() did.
 *
 * Runs in: target. Threads: any.
 */

#include <stdbool.h>

struct seccomp_effects {
    bool seals;   /* after the call, we may make no system call */
    bool freezes; /* after the call, rdtsc faults, also in the vdso */
};

/* ---- what each library defines ---- */

/** To be called before the program's call, with its effects. Returns those that seccomp_end() is to undo on failure. */
struct seccomp_effects seccomp_begin(struct seccomp_effects effects);
/** To be called after the program's call. If that has failed, undoes the effects. */
void seccomp_end(struct seccomp_effects effects, bool failed);
/** Sets `seccomp_next`. A hook calls this if the program calls the hook before `seccomp_next` is set. */
void seccomp_boot(void) __attribute__((visibility("hidden")));

/** The functions that the two hooks forward to. */
struct seccomp_next {
    int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
    long (*syscall)(long, long, long, long, long, long, long);
};
extern struct seccomp_next seccomp_next __attribute__((visibility("hidden")));

#endif
