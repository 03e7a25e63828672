/* SPDX-License-Identifier: BSD-2-Clause */
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "agent/clock.h"
#include "agent/cold.h"
#include "base/sigsafe/sys.h"

/*
 * A program that enters seccomp may die of the first system call its filter does not know. Both ways in through libc
 * are watched; after that the ledger does not grow any more. Programs also ask in these ways whether there is a seccomp:
 * a call that fails changes nothing.
 */

/* Declared without "...": the arguments are passed on in their registers either way. */
EXPORT int allium_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
                        unsigned long d) __asm__("prctl");

struct way_in {
    bool seals;
    bool freezes; /* rdtsc faults after it, in the vdso too */
};

static struct way_in prctl_leads_to(unsigned long option, unsigned long a)
{
    bool strict = option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT;
    return (struct way_in){.seals = option == PR_SET_SECCOMP,
                           .freezes = strict || (option == PR_SET_TSC && a == PR_TSC_SIGSEGV)};
}

static struct way_in seccomp_leads_to(unsigned long operation)
{
    return (struct way_in){.seals =
                               operation == SECCOMP_SET_MODE_STRICT || operation == SECCOMP_SET_MODE_FILTER,
                           .freezes = operation == SECCOMP_SET_MODE_STRICT};
}

/* A vfork child goes alone, though it runs in our memory. */
static struct way_in begin(struct way_in w)
{
    bool leads_in = (w.seals || w.freezes) && !load_relaxed(&process.ledger.sealed);
    if (leads_in && process_settle(&thread_self) && sys_call(SYS_getpid, 0) != process.pid)
        return (struct way_in){.seals = false};
    if (w.seals)
        process_seal();
    w.freezes = w.freezes && clock_freeze(); /* what an earlier call froze stays so if this one fails */
    return w;
}

static void end(struct way_in w, bool failed)
{
    if (failed && w.freezes)
        clock_thaw();
    if (failed && w.seals)
        process_unseal();
}

int allium_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    if (unlikely(!next.prctl))
        boot_agent();
    struct way_in w = begin(prctl_leads_to((unsigned long)option, a));
    int result = next.prctl(option, a, b, c, d);
    end(w, result != 0);
    return result;
}

/* Of the two system calls that lead to seccomp; neither has more than five parameters. */
static long watched_syscall(long nr, long a, long b, long c, long d, long e)
{
    struct way_in w = begin(nr == SYS_seccomp ? seccomp_leads_to((unsigned long)a)
                                              : prctl_leads_to((unsigned long)a, (unsigned long)b));
    long result = next.syscall(nr, a, b, c, d, e, 0);
    end(w, result != 0);
    return result;
}

/*
 * syscall(2). The seventh word of its parameters lies on the caller's stack, or something else does there: a function in C
 * would load it and store it again, and undo what another thread has written meanwhile. So these two keep away from it.
 */
__attribute__((naked)) EXPORT long allium_syscall(void) __asm__("syscall");
long allium_syscall(void)
{
    __asm__("cmp %[seccomp], %%rdi\n\t"
            "je %P[watched]\n\t"
            "cmp %[prctl], %%rdi\n\t"
            "je %P[watched]\n\t"
            "jmp *%[real]" ::[seccomp] "i"(SYS_seccomp),
            [prctl] "i"(SYS_prctl), [watched] "i"(watched_syscall), [real] "m"(next.syscall));
}

static void boot(void)
{
    boot_agent();
}

__attribute__((naked)) long early_syscall(void)
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
            "jmp *%[real]" ::[boot] "i"(boot),
            [real] "m"(next.syscall));
}
