/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_REGS_X86_64_H
#define UNWIND_REGS_X86_64_H

/*
 * The DWARF numbers of the x86-64 registers that the unwinder needs (System V ABI, figure 3.36), and the layout of the
 * frame that the kernel pushes for a signal (struct rt_sigframe of Linux).
 */

#include <stdbool.h>
#include <stdint.h>

enum {
    REG_RBX = 3,
    REG_RBP = 6,
    REG_RSP = 7,
    REG_R12 = 12,
    REG_R13,
    REG_R14,
    REG_R15,
    REG_RA, /* 16, the number that DWARF gives to the return address */
    REG_COUNT
};

/*
 * The registers of a caller that an unwinder can compute: those that a callee preserves, the stack pointer and the
 * return address. A row of rules has one slot for each of these registers.
 */
enum { SLOT_RBX, SLOT_RBP, SLOT_RSP, SLOT_R12, SLOT_R13, SLOT_R14, SLOT_R15, SLOT_RA, SLOT_COUNT };

static inline int regs_slot(uint64_t reg)
{
    static const int8_t slots[REG_COUNT] = {-1, -1, -1, SLOT_RBX, -1,       -1,       SLOT_RBP, SLOT_RSP, -1,
                                            -1, -1, -1, SLOT_R12, SLOT_R13, SLOT_R14, SLOT_R15, SLOT_RA};
    return reg < REG_COUNT ? slots[reg] : -1;
}

static inline int regs_of_slot(int slot)
{
    static const uint8_t regs[SLOT_COUNT] = {REG_RBX, REG_RBP, REG_RSP, REG_R12,
                                             REG_R13, REG_R14, REG_R15, REG_RA};
    return regs[slot];
}

/*
 * At __restore_rt the stack pointer points to the ucontext. The ucontext begins with uc_flags, uc_link and uc_stack
 * (40 bytes); the registers (gregs) follow, 8 bytes each.
 */
#define SIGFRAME_BYTES      (40 + 17 * 8)
#define SIGFRAME_GREG(n)    (40 + 8 * (n))
#define SIGFRAME_RBP_OFFSET SIGFRAME_GREG(10)
#define SIGFRAME_RSP_OFFSET SIGFRAME_GREG(15)
#define SIGFRAME_RIP_OFFSET SIGFRAME_GREG(16)

#define REGS_SIGRETURN_BYTES 9
/* Returns whether the REGS_SIGRETURN_BYTES bytes at `code` are: mov $__NR_rt_sigreturn, %rax; syscall. */
static inline bool regs_is_sigreturn(const uint8_t *code)
{
    static const uint8_t bytes[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    for (unsigned i = 0; i < sizeof(bytes); i++)
        if (code[i] != bytes[i])
            return false;
    return true;
}

/* Copies the gregs of a ucontext to `regs`, by DWARF number. order[i]: the DWARF number of the register in gregs[i]. */
static inline void regs_from_sigframe(uint64_t regs[static REG_COUNT], const uint64_t *gregs)
{
    static const uint8_t order[17] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16};
    for (unsigned i = 0; i < 17; i++)
        regs[order[i]] = gregs[i];
}

/*
 * Stores in `regs`, by DWARF number, the current values of the registers that a callee preserves, of the stack pointer
 * and of the pc.
 */
#define regs_capture(regs)                                                                                   \
    do {                                                                                                     \
        __asm__ volatile("movq %%rbx, %0\n\tmovq %%rbp, %1\n\tmovq %%r12, %2\n\tmovq %%r13, %3\n\t"          \
                         "movq %%r14, %4\n\tmovq %%r15, %5"                                                  \
                         : "=m"((regs)[REG_RBX]), "=m"((regs)[REG_RBP]), "=m"((regs)[REG_R12]),              \
                           "=m"((regs)[REG_R13]), "=m"((regs)[REG_R14]), "=m"((regs)[REG_R15]));             \
        __asm__ volatile("movq %%rsp, %0\n\tleaq 0(%%rip), %%rax\n\tmovq %%rax, %1"                          \
                         : "=m"((regs)[REG_RSP]), "=m"((regs)[REG_RA])                                       \
                         :                                                                                   \
                         : "rax");                                                                           \
    } while (0)

#endif
