/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

/*
 * Call frame information: finds the FDE of .eh_frame that covers a pc, and runs the instructions of the FDE and its CIE
 * to get one row of rules (DWARF 5, 6.4; for .eh_frame and .eh_frame_hdr LSB 5.0, 10.6).
 *
 * Runs in: target and tool. Threads: any. No state, no allocation, no lock; about 500 bytes of stack.
 * Invariant: reads only within the segment that holds the rules: from m->rules_start to m->rules_end.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"
#include "unwind/module.h"
#include "unwind/regs_x86_64.h"

enum cfi_how {
    CFI_SAME, /* the register still has the caller's value */
    CFI_UNDEFINED,
    CFI_AT,       /* the caller's value was saved at address CFA + value */
    CFI_IS,       /* the caller's value is the number CFA + value */
    CFI_REGISTER, /* the caller's value is in register `value` */
    CFI_AT_EXPR, /* the expression at module start + value computes the address at which the caller's value was saved */
    CFI_IS_EXPR, /* the expression at module start + value computes the caller's value */
};

struct cfi_row {
    uint8_t how[SLOT_COUNT]; /* enum cfi_how */
    uint8_t cfa_register;    /* unused if cfa_expr is set */
    bool signal_frame;       /* augmentation "S": a signal interrupted the caller at the caller's pc */
    int32_t cfa_offset;
    int32_t cfa_expr; /* the CFA expression (ULEB128 length first) is at module start + cfa_expr; 0: none */
    int32_t value[SLOT_COUNT];
};

/**
 * Finds the row of rules in force at `pc`, which is an interrupted instruction (`exact`) or the byte before a return
 * address. If no FDE covers pc, but the frame is known to have no caller, returns true, and the rule of the return
 * address is CFI_UNDEFINED. False: the rules for pc are missing, invalid or unsupported, and *row has no meaning.
 */
ONE_COPY bool cfi_find(const struct unwind_module *m, uintptr_t pc, bool exact, struct cfi_row *row);

#endif
