/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_EXPR_H
#define UNWIND_EXPR_H

/*
 * Evaluates the DWARF expressions of call frame information.
 *
 * Runs in: target and tool. Threads: any. No state.
 * Invariant: reads memory of the program only through expr_context.read, and does at most EXPR_STEPS_MAX operations.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"
#include "unwind/module.h"
#include "unwind/regs_x86_64.h"

struct expr_context {
    const uint64_t *regs; /* REG_COUNT values, by DWARF number */
    /* Reads the 8 bytes at address `at`. False: they may not be read. NULL: expressions may not read memory. */
    bool (*read)(void *memory, uint64_t at, uint64_t *value);
    void *memory;
};

/**
 * Evaluates the expression at module start + `block` (ULEB128 length first); *result gets its value. If `first` is not
 * NULL, *first is pushed before the evaluation. False: the expression is invalid, unsupported or too long, or reads
 * memory that it may not read.
 */
ONE_COPY bool expr_eval(const struct unwind_module *m, int32_t block, const struct expr_context *ctx,
                        const uint64_t *first, uint64_t *result);

#endif
