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

#include <sys/syscall.h>

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

#endif
