/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_X86_CODE_H
#define BASE_X86_CODE_H

/*
 * Machine code of x86-64: which functions a function calls, and where it returns. Decoded by Zydis; no other file
 * includes its headers.
 *
 * Runs in: the tool. Threads: any. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Code that is loaded at an address. */
struct x86_code {
    const uint8_t *bytes;
    uint64_t low, high; /* addresses */
};

enum x86_exit {
    X86_CALLS,   /* the address is called */
    X86_JUMPS,   /* ... is jumped to, within the function or as its end */
    X86_RETURNS, /* ... is that of an instruction that returns */
};

/** Returns whether the code behind the call, or at the target of the jump, is to be followed. */
typedef bool x86_exit_fn(void *arg, uint64_t address, enum x86_exit how);

/**
 * Follows the code from `entry` on, along jumps and behind calls, and calls `fn` for each exit. Targets that
 * are known only when the program runs are left out.
 */
void x86_code_exits(const struct x86_code *code, uint64_t entry, x86_exit_fn *fn, void *arg);

#endif
