/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_SECCOMP_GUARD_H
#define TARGET_SECCOMP_GUARD_H

/*
 * Detects that the program enters seccomp. Its filter may kill it at the first system call of ours. libc has two ways
 * in: prctl() and syscall(). The libraries export both, and call seccomp_begin() and seccomp_end() around the call.
 * Programs also use these functions to ask whether a filter can be had; such a call fails, and nothing changes.
 *
 * Runs in: target. Threads: any.
 */

#include <stdbool.h>

struct seccomp_way {
    bool seals;   /* after it, no system call of ours may be made */
    bool freezes; /* after it, rdtsc faults, also in the vdso */
};

/* ---- what each library defines ---- */

/** Before the call. Returns what seccomp_end() is to undo if the call fails. */
struct seccomp_way seccomp_begin(struct seccomp_way way);
/** After the call. */
void seccomp_end(struct seccomp_way way, bool failed);
/** Finds the functions in `seccomp_next`. Called if a hook is called before they are known. */
void seccomp_boot(void) __attribute__((visibility("hidden")));

/** The functions that the two hooks forward to. */
struct seccomp_next {
    int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
    long (*syscall)(long, long, long, long, long, long, long);
};
extern struct seccomp_next seccomp_next __attribute__((visibility("hidden")));

#endif
