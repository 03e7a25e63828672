/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * -pg -mfentry, with which this file is compiled: a call of __fentry__() at the entry of each function. gcc cannot make
 * it a nop in code for any address (-mnop-mcount), so the call is there also while nothing is wanted.
 */
#include "bench/hooks/bench_mechanism.h"

#define PLAIN __attribute__((no_instrument_function))

uint32_t bench_fentry_is_on __attribute__((visibility("hidden")));

/* Like the call of -fpatchable-function-entry, which is patched instead of tested. */
__asm__(".text\n"
        ".balign 64\n"
        ".globl __fentry__\n"
        ".type __fentry__, @function\n"
        "__fentry__:\n\t"
        "cmpl $0, bench_fentry_is_on(%rip)\n\t"
        "jne bench_entry_trampoline\n\t"
        "ret\n"
        ".size __fentry__, . - __fentry__\n");

BENCH_BARE(bare)

static BENCH_CODE uint64_t work_fentry(uint64_t x)
{
    BENCH_WORK(x);
    return x;
}
BENCH_LOOP(loop_fentry, work_fentry(i))

static PLAIN const char *begin(bool on)
{
    store_relaxed(&bench_fentry_is_on, on);
    return NULL;
}
BENCH_MECHANISM(fentry) = {"fentry", bare, loop_fentry, begin, 1, NULL};
