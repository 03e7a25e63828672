/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

/*
 * Call frame information: finds the entry of .eh_frame for a pc, and runs its instructions to get one row of rules
 * (DWARF 5, 6.4; LSB 5.0, 10.6 for .eh_frame and its header).
 *
 * Runs in: target and tool. Threads: any. No state, no allocation, no lock; about 500 bytes of stack.
 * Invariant: reads only within the segment of the module that holds the rules.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"
#include "unwind/module.h"
#include "unwind/regs_x86_64.h"

enum cfi_how {
    CFI_SAME, /* the register still has the caller's value */
    CFI_UNDEFINED,
    CFI_AT,       /* the caller's value is at CFA + value */
    CFI_IS,       /* the caller's value is CFA + value */
    CFI_REGISTER, /* the caller's value is in register `value` */
    CFI_AT_EXPR, /* the caller's value is at the address that the expression at module start + value computes */
    CFI_IS_EXPR, /* the caller's value is the result of the expression at module start + value */
};

struct cfi_row {
    uint8_t how[SLOT_COUNT]; /* enum cfi_how */
    uint8_t cfa_register;    /* unused if cfa_expr is set */
    bool signal_frame;       /* augmentation "S": the pc is exact, not a return address */
    int32_t cfa_offset;
    int32_t cfa_expr; /* offset of the CFA expression (ULEB128 length first) in the module; 0: none */
    int32_t value[SLOT_COUNT];
};

/**
 * Finds the row of rules in force at `pc`: an interrupted instruction (`exact`), or the byte before a return address.
 * If no FDE covers pc, but the frame is known to have no caller, the row's return address is CFI_UNDEFINED. False: no
 * FDE covers pc, or the FDE is invalid or unsupported.
 */
ONE_COPY bool cfi_find(const struct unwind_module *m, uintptr_t pc, bool exact, struct cfi_row *row);

#endif
