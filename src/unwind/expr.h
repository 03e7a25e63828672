/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_EXPR_H
#define UNWIND_EXPR_H

/*
 * Evaluates the DWARF expressions of call frame information.
 *
 * Runs in: target and tool. Threads: any. No state.
 * Invariant: reads memory of the program only through `read`, and does at most EXPR_STEPS_MAX operations.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"
#include "unwind/module.h"
#include "unwind/regs_x86_64.h"

struct expr_context {
    const uint64_t *regs; /* REG_COUNT */
    /* Reads a word of the program's memory. False: it may not be read. NULL: no word may be read. */
    bool (*read)(void *memory, uint64_t at, uint64_t *value);
    void *memory;
};

/**
 * Evaluates the block at module start + `block` (its length first, as ULEB128). If `first` is not NULL, its value is
 * pushed before. False: the expression is invalid, or reads memory that it may not.
 */
ONE_COPY bool expr_eval(const struct unwind_module *m, int32_t block, const struct expr_context *ctx,
                        const uint64_t *first, uint64_t *result);

#endif
