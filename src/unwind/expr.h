/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_EXPR_H
#define UNWIND_EXPR_H

/*
 * Evaluates the DWARF expressions of call frame information.
 *
 * Runs in: target. Threads: any. No state. Invariant: dereferences only what stack_holds() allows, at most
 * EXPR_STEPS_MAX operations.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"
#include "unwind/module.h"
#include "unwind/regs_x86_64.h"
#include "unwind/stack.h"

struct expr_context {
    const uint64_t *regs;       /* REG_COUNT */
    struct stack_bounds *stack; /* NULL: nothing may be dereferenced */
    uintptr_t stack_from;       /* lowest readable address: the stack pointer of the frame */
    bool sealed;
};

/** Runs the block at module start + `block` (ULEB128 length first); `first` is pushed before, if not NULL. */
ONE_COPY bool expr_eval(const struct unwind_module *m, int32_t block, const struct expr_context *ctx,
                        const uint64_t *first, uint64_t *result);

#endif
