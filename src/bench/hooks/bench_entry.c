/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mechanisms at the entry of a function, whose code is changed while the program runs: nops of the compiler that
 * become a call, and code that was not prepared, of which the first instructions make room for a jump.
 */
#include <string.h>

#include "bench/hooks/bench_mechanism.h"

#define SAVE                                                                                                 \
    "push %rax\n\tpush %rcx\n\tpush %rdx\n\tpush %rsi\n\tpush %rdi\n\tpush %r8\n\tpush %r9\n\tpush %r10\n\t" \
    "push %r11\n\t"
#define RESTORE                                                                                              \
    "pop %r11\n\tpop %r10\n\tpop %r9\n\tpop %r8\n\tpop %rdi\n\tpop %rsi\n\tpop %rdx\n\tpop %rcx\n\tpop "     \
    "%rax\n\t"

/* ---- -fpatchable-function-entry ---- */

/* Called at the entry of a function, before it has done anything: 8 bytes make the stack aligned. */
__asm__(".text\n"
        ".balign 64\n"
        ".globl bench_entry_trampoline\n.hidden bench_entry_trampoline\n"
        ".type bench_entry_trampoline, @function\n"
        "bench_entry_trampoline:\n\t" SAVE "subq $8, %rsp\n\t"
        "movq 80(%rsp), %rdi\n\t"
        "subq $5, %rdi\n\t"
        "movq 88(%rsp), %rsi\n\t"
        "call bench_hook\n\t"
        "addq $8, %rsp\n\t" RESTORE "ret\n"
        ".size bench_entry_trampoline, . - bench_entry_trampoline\n");
extern const char bench_entry_trampoline[] __attribute__((visibility("hidden")));

BENCH_BARE(bare)

static BENCH_CODE __attribute__((patchable_function_entry(5))) uint64_t work_patchable(uint64_t x)
{
    BENCH_WORK(x);
    return x;
}
BENCH_LOOP(loop_patchable, work_patchable(i))

static const char *begin_patchable(bool on)
{
    /* of gcc; of clang, as one instruction */
    static const uint8_t nops[5] = {0x90, 0x90, 0x90, 0x90, 0x90}, nop[5] = {0x0f, 0x1f, 0x44, 0x00, 0x08};
    uint8_t *entry = (uint8_t *)(uintptr_t)work_patchable;
    if (entry[0] == 0xf3 && entry[1] == 0x0f) /* endbr64 */
        entry += 4;
    if (memcmp(entry, nops, sizeof(nops)) != 0 && memcmp(entry, nop, sizeof(nop)) != 0)
        return "the compiler has no -fpatchable-function-entry: build allium with gcc 8 or clang 10, or "
               "later";
    return !on || bench_patch_jump(entry, 0xe8, bench_entry_trampoline) ? NULL : BENCH_NO_PATCH;
}
BENCH_MECHANISM(patchable) = {"patchable-entry", bare, loop_patchable, begin_patchable, 1, NULL};

/* ---- a jump over the first instructions, which are executed elsewhere ---- */

#define DISPLACED "leaq 1(%rdi), %rax\n\tsubq $1, %rax\n\t" /* 8 bytes */
#define TARGET(name)                                                                                         \
    __asm__(".text\n"                                                                                        \
            ".balign 64\n"                                                                                   \
            ".type " name ", @function\n" name ":\n\t" DISPLACED "1:\n\tret\n"                               \
            ".size " name ", . - " name "\n"                                                                 \
            ".balign 64\n" name "_displaced:\n\t" DISPLACED "jmp 1b\n")
TARGET("bench_target_bare");
TARGET("bench_target_jump");
TARGET("bench_target_save");

/* The wrapper knows the function's arguments, and saves what it needs itself. */
uint64_t bench_target_bare(uint64_t x) __attribute__((visibility("hidden")));
uint64_t bench_target_jump(uint64_t x) __attribute__((visibility("hidden")));
uint64_t bench_target_jump_displaced(uint64_t x) __attribute__((visibility("hidden")));
uint64_t bench_target_save(uint64_t x) __attribute__((visibility("hidden")));
BENCH_LOOP(loop_target, bench_target_bare(i))
BENCH_LOOP(loop_jump, bench_target_jump(i))
BENCH_LOOP(loop_save, bench_target_save(i))

static BENCH_CODE uint64_t wrap_target(uint64_t x)
{
    bench_hook((void *)bench_target_jump, BENCH_CALLER);
    return bench_target_jump_displaced(x);
}

static const char *begin_jump(bool on)
{
    if (on && !bench_patch_jump((void *)bench_target_jump, 0xe9, (const void *)wrap_target))
        return BENCH_NO_PATCH;
    return NULL;
}
BENCH_MECHANISM(jump) = {"jump", loop_target, loop_jump, begin_jump, 1, NULL};

/* This one knows nothing of the function: it saves all registers that a function may change. */
#define EACH_XMM(X)    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define SAVE_XMM(n)    "movups %xmm" #n ", 16*" #n "(%rsp)\n\t"
#define RESTORE_XMM(n) "movups 16*" #n "(%rsp), %xmm" #n "\n\t"
__asm__(".text\n"
        ".balign 64\n"
        ".type bench_save_trampoline, @function\n"
        "bench_save_trampoline:\n\t"
        "pushfq\n\t" SAVE "subq $264, %rsp\n\t" EACH_XMM(
            SAVE_XMM) "leaq bench_target_save(%rip), %rdi\n\t"
                      "movq 344(%rsp), %rsi\n\t"
                      "call bench_hook\n\t" EACH_XMM(
                          RESTORE_XMM) "addq $264, %rsp\n\t" RESTORE "popfq\n\t"
                                       "jmp bench_target_save_displaced\n"
                                       ".size bench_save_trampoline, . - bench_save_trampoline\n");
extern const char bench_save_trampoline[] __attribute__((visibility("hidden")));

static const char *begin_save(bool on)
{
    return !on || bench_patch_jump((void *)bench_target_save, 0xe9, bench_save_trampoline) ? NULL
                                                                                           : BENCH_NO_PATCH;
}
BENCH_MECHANISM(jump_save) = {"jump-save", loop_target, loop_save, begin_save, 1, NULL};
