/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_RULE_COMPILE_H
#define UNWIND_RULE_COMPILE_H

/*
 * From a row of call frame information to a rule of one word, where one word can say it.
 *
 * Runs in: target. Threads: any. No state.
 */

#include <stdint.h>

#include "unwind/cfi.h"
#include "unwind/module.h"
#include "unwind/rule.h"

/** The rule for `pc` of `m`, whose row is `row`; RULE_GENERAL when a word cannot say it. */
struct rule_parts rule_compile_row(const struct unwind_module *m, const struct cfi_row *row, uintptr_t pc);

#endif
