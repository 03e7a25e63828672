/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_SECCOMP_GUARD_H
#define TARGET_SECCOMP_GUARD_H

/*
 * A program that enters seccomp may die of the first system call that its filter does not know. Both ways in through
 * libc are watched: prctl() and syscall(), which the libraries export for this. Programs also ask in these ways whether
 * there is a seccomp: a call that fails changes nothing.
 *
 * Runs in: target. Threads: any.
 */

#include <stdbool.h>

struct seccomp_way {
    bool seals;   /* no system call of ours may come after it */
    bool freezes; /* rdtsc faults after it, in the vdso too */
};

/* What whoever exports them does about it. */
/** Before the call; what it returns goes to seccomp_end(). */
struct seccomp_way seccomp_begin(struct seccomp_way way);
/** After it. */
void seccomp_end(struct seccomp_way way, bool failed);
/** Sets `seccomp_next`: called when it is not yet. */
void seccomp_boot(void) __attribute__((visibility("hidden")));

/** Where the two lead. */
struct seccomp_next {
    int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
    long (*syscall)(long, long, long, long, long, long, long);
};
extern struct seccomp_next seccomp_next __attribute__((visibility("hidden")));

#endif
