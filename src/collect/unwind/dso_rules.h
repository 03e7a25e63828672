/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_DSO_RULES_H
#define COLLECT_DSO_RULES_H

/*
 * The unwind rules of a file in the unwinder's own terms. Separate from dso.h because the names of registers
 * clash with those in <signal.h>.
 */

#include "collect/unwind/dso.h"
#include "unwind/cfi.h"
#include "unwind/expr.h"

/** Finds the rules in force at an address of the file, see cfi_find(). */
bool dso_row(const struct dso *f, uint64_t address, bool exact, struct cfi_row *row);
/** Evaluates an expression of such a row, see expr_eval(). */
bool dso_eval(const struct dso *f, int32_t block, const struct expr_context *ctx, const uint64_t *first,
              uint64_t *result);
/** Returns whether the address is the code that a signal handler returns to. */
bool dso_is_sigreturn(const struct dso *f, uint64_t address);

#endif
