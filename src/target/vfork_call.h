/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_VFORK_CALL_H
#define TARGET_VFORK_CALL_H

/*
 * A vfork() that calls functions around the child. The child must not write into a CPU's ring, because the kernel does
 * not abort its restartable sequences (rseq(2)). The child cannot see that: it has the thread-local storage of the
 * calling thread, which says that the thread is registered, and on which CPU it was. So `begins` marks the storage. The
 * mark stays until the child has executed a program, or ended: until then the calling thread of the parent sleeps.
 *
 * Runs in: target.
 */

#include <linux/sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "base/sigsafe/compiler.h"

/*
 * Defines the function `name`, which has the symbol vfork.
 *     uint64_t begins(void)       returns what is to be restored
 *     void ended(uint64_t)        restores it, in the parent
 *     pid_t failed(int error)     returns -1, with errno
 *
 * The child returns first, and from then on uses the stack below its caller's frame. So the return address and what is
 * to be restored are kept in registers, which the kernel leaves alone. The child jumps: a shadow stack stays as it is.
 */
#define VFORK_CALL(exported, name, begins, ended, failed)                                                    \
    __attribute__((naked)) exported pid_t name(void) __asm__("vfork");                                       \
    pid_t name(void)                                                                                         \
    {                                                                                                        \
        __asm__("sub $8, %%rsp\n\t"                                                                          \
                "call %P[begins_]\n\t"                                                                       \
                "add $8, %%rsp\n\t"                                                                          \
                "mov %%rax, %%rsi\n\t"                                                                       \
                "pop %%rdi\n\t"                                                                              \
                "mov %[number], %%eax\n\t"                                                                   \
                "syscall\n\t"                                                                                \
                "test %%rax, %%rax\n\t"                                                                      \
                "jz 1f\n\t"                                                                                  \
                "push %%rdi\n\t"                                                                             \
                "push %%rax\n\t"                                                                             \
                "mov %%rsi, %%rdi\n\t"                                                                       \
                "call %P[ended_]\n\t"                                                                        \
                "pop %%rax\n\t"                                                                              \
                "test %%rax, %%rax\n\t"                                                                      \
                "js 2f\n\t"                                                                                  \
                "ret\n"                                                                                      \
                "1:\n\t"                                                                                     \
                "jmp *%%rdi\n"                                                                               \
                "2:\n\t"                                                                                     \
                "neg %%eax\n\t"                                                                              \
                "mov %%eax, %%edi\n\t"                                                                       \
                "jmp %P[failed_]" ::[number] "i"(SYS_vfork),                                                 \
                [begins_] "i"(begins), [ended_] "i"(ended), [failed_] "i"(failed));                          \
    }

/** Returns whether a child of clone(2) with these flags has the memory and the storage of the calling thread. */
static inline bool vfork_call_is_alike(uint64_t flags)
{
    return (flags & CLONE_VM) && !(flags & CLONE_SETTLS);
}

typedef int vfork_clone_fn(int (*)(void *), void *, int, void *, pid_t *, void *, pid_t *);

/*
 * Defines the function `name`, which has the symbol clone, without the "..." of clone(2): the arguments are in the same
 * places. `real`: a vfork_clone_fn * to libc's function; while it is NULL, `find` sets it. Without
 * CLONE_VFORK, the calling thread and the child run at the same time and share thread-local storage: then `ended` is
 * called only if the call fails.
 */
#define VFORK_CLONE(exported, name, begins, ended, real, find)                                               \
    exported int name(int (*run)(void *), void *stack, int flags, void *arg, pid_t *parent_id,               \
                      void *storage, pid_t *child_id) __asm__("clone");                                      \
    int name(int (*run)(void *), void *stack, int flags, void *arg, pid_t *parent_id, void *storage,         \
             pid_t *child_id)                                                                                \
    {                                                                                                        \
        if (unlikely(!(real)))                                                                               \
            find();                                                                                          \
        if (!vfork_call_is_alike((unsigned)flags))                                                           \
            return (real)(run, stack, flags, arg, parent_id, storage, child_id);                             \
        const uint64_t before = begins();                                                                    \
        const int id = (real)(run, stack, flags, arg, parent_id, storage, child_id);                         \
        if (id < 0 || (flags & CLONE_VFORK))                                                                 \
            ended(before);                                                                                   \
        return id;                                                                                           \
    }

/*
 * Defines the static function `name`, which stands between a program's syscall(2) and `real`, a pointer to the real
 * one. It calls `begins` and `ended` around children that the program makes by the system calls clone and clone3.
 * Without CLONE_VFORK the calling thread and the child run at once with one storage: then the mark stays.
 *
 * Other calls are passed on by a jump: they may have a seventh argument in the caller's frame (seccomp_guard.c). A
 * child with the memory of its parent has a stack of its own, on which it returns from the real function. The flags of
 * clone3 are read after the call, because their address may be invalid until the kernel has accepted it.
 */
#define VFORK_SYSCALL(name, begins, ended, real)                                                             \
    static __attribute__((used)) long name##_watched(long nr, long a, long b, long c, long d, long e)        \
    {                                                                                                        \
        if (nr == SYS_clone && !vfork_call_is_alike((uint64_t)a))                                            \
            return (real)(nr, a, b, c, d, e, 0);                                                             \
        const uint64_t before = begins();                                                                    \
        const long id = (real)(nr, a, b, c, d, e, 0);                                                        \
        const uint64_t flags = nr == SYS_clone ? (uint64_t)a                                                 \
                               : id < 0        ? 0                                                           \
                                               : ((const struct clone_args *)a)->flags;                             \
        if (id < 0 || (flags & CLONE_VFORK) || !vfork_call_is_alike(flags))                                  \
            ended(before);                                                                                   \
        return id;                                                                                           \
    }                                                                                                        \
    __attribute__((naked)) static long name(void)                                                            \
    {                                                                                                        \
        __asm__("cmp %[clone], %%rdi\n\t"                                                                    \
                "je %P[watched]\n\t"                                                                         \
                "cmp %[clone3], %%rdi\n\t"                                                                   \
                "je %P[watched]\n\t"                                                                         \
                "jmp *%[next]" ::[clone] "i"(SYS_clone),                                                     \
                [clone3] "i"(SYS_clone3), [watched] "i"(name##_watched), [next] "m"(real));                  \
    }

#endif
