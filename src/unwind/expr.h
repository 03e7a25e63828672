/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_EXPR_H
#define UNWIND_EXPR_H

/*
 * Evaluates the DWARF expressions of call frame information.
 *
 * Runs in: target and tool. Threads: any. No state. Invariant: reads memory only through the function it is given, at most
 * EXPR_STEPS_MAX operations.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"
#include "unwind/module.h"
#include "unwind/regs_x86_64.h"

struct expr_context {
    const uint64_t *regs; /* REG_COUNT */
    /* A word of the program's memory; false: it may not be read. NULL: none may. */
    bool (*read)(void *memory, uint64_t at, uint64_t *value);
    void *memory;
};

/** Runs the block at module start + `block` (ULEB128 length first); `first` is pushed before, if not NULL. */
ONE_COPY bool expr_eval(const struct unwind_module *m, int32_t block, const struct expr_context *ctx,
                        const uint64_t *first, uint64_t *result);

#endif
