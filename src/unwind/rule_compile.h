/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_RULE_COMPILE_H
#define UNWIND_RULE_COMPILE_H

/*
 * Converts a row of call frame information to a one-word rule, if one word can express it.
 *
 * Runs in: target. Threads: any. No state.
 */

#include <stdint.h>

#include "unwind/cfi.h"
#include "unwind/module.h"
#include "unwind/rule.h"

/** Converts the row of the frame whose pc, in module `m`, is `pc`. RULE_GENERAL: one word cannot express the row. */
struct rule_parts rule_compile_row(const struct unwind_module *m, const struct cfi_row *row, uintptr_t pc);

#endif
