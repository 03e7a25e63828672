/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_X86_CODE_H
#define BASE_X86_CODE_H

/*
 * Machine code of x86-64: which addresses a function calls and jumps to. Decoded by Zydis, which this is the only file to
 * include.
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

/** An address that a function calls, or jumps to, outside of itself. */
typedef void x86_target_fn(void *arg, uint64_t target, bool calls);

/**
 * Decodes the function at `entry`, of `size` bytes; 0: not known, then it ends at the first return or jump that no jump
 * forward has passed over. Calls `fn` for each target; those that are known only when the program runs are left out.
 */
void x86_code_targets(const struct x86_code *code, uint64_t entry, uint64_t size, x86_target_fn *fn,
                      void *arg);

#endif
