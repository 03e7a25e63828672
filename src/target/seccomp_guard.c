/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/seccomp_guard.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/sigsafe/compiler.h"

#define EXPORT __attribute__((visibility("default")))

/** The first value of seccomp_next.syscall. Finds the real syscall() and jumps to it. */
static long early_syscall(void);
struct seccomp_next seccomp_next = {.syscall = (void *)early_syscall};

/* Declared without the "..." of prctl(2), because the arguments are in the same registers with and without it. */
EXPORT int allium_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
                        unsigned long d) __asm__("prctl");

static struct seccomp_effects effects_of_prctl(unsigned long option, unsigned long a)
{
    bool strict = option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT;
    return (struct seccomp_effects){.seals = option == PR_SET_SECCOMP,
                                    .freezes = strict || (option == PR_SET_TSC && a == PR_TSC_SIGSEGV)};
}

static struct seccomp_effects effects_of_seccomp(unsigned long operation)
{
    return (struct seccomp_effects){.seals = operation == SECCOMP_SET_MODE_STRICT ||
                                             operation == SECCOMP_SET_MODE_FILTER,
                                    .freezes = operation == SECCOMP_SET_MODE_STRICT};
}

int allium_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    if (unlikely(!seccomp_next.prctl))
        seccomp_boot();
    struct seccomp_effects w = seccomp_begin(effects_of_prctl((unsigned long)option, a));
    int result = seccomp_next.prctl(option, a, b, c, d);
    seccomp_end(w, result != 0);
    return result;
}

/* Handles syscall(SYS_seccomp, ...) and syscall(SYS_prctl, ...), which have at most five parameters. */
static long watched_syscall(long nr, long a, long b, long c, long d, long e)
{
    struct seccomp_effects w =
        seccomp_begin(nr == SYS_seccomp ? effects_of_seccomp((unsigned long)a)
                                        : effects_of_prctl((unsigned long)a, (unsigned long)b));
    long result = seccomp_next.syscall(nr, a, b, c, d, e, 0);
    seccomp_end(w, result != 0);
    return result;
}

/*
 * syscall(2). A seventh argument lies in the stack frame of the caller; if the caller passed fewer, a variable of the
 * caller's may lie there. A wrapper in C would load that word and store it again, and so might undo a write of another
 * thread. The two naked functions below do not touch that word.
 */
__attribute__((naked)) EXPORT long allium_syscall(void) __asm__("syscall");
long allium_syscall(void)
{
    __asm__("cmp %[seccomp], %%rdi\n\t"
            "je %P[watched]\n\t"
            "cmp %[prctl], %%rdi\n\t"
            "je %P[watched]\n\t"
            "jmp *%[real]" ::[seccomp] "i"(SYS_seccomp),
            [prctl] "i"(SYS_prctl), [watched] "i"(watched_syscall), [real] "m"(seccomp_next.syscall));
}

__attribute__((naked)) static long early_syscall(void)
{
    __asm__("push %%rdi\n\t"
            "push %%rsi\n\t"
            "push %%rdx\n\t"
            "push %%rcx\n\t"
            "push %%r8\n\t"
            "push %%r9\n\t"
            "sub $8, %%rsp\n\t"
            "call %P[boot]\n\t"
            "add $8, %%rsp\n\t"
            "pop %%r9\n\t"
            "pop %%r8\n\t"
            "pop %%rcx\n\t"
            "pop %%rdx\n\t"
            "pop %%rsi\n\t"
            "pop %%rdi\n\t"
            "jmp *%[real]" ::[boot] "i"(seccomp_boot),
            [real] "m"(seccomp_next.syscall));
}
