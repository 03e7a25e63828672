/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_KERNEL_CALLER_H
#define SYS_KERNEL_CALLER_H

/*
 * The call in a stack of the kernel for whose sake something was allocated: the innermost one whose function is no
 * helper (share/allium/kernel-helpers).
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "sys/session.h"

/** Returns whether the function of a call is a helper, or is part of how the BPF program was called. */
bool kernel_caller_is_helper(struct sys_session *s, uint64_t address);
/**
 * Sets the column to the call's function, file or directory, by the name of the column. If the stack was lost, to the
 * text that says so. If all functions are helpers, the outermost one counts.
 */
void kernel_caller_name(struct sys_session *s, struct table *t, uint32_t column, int stack);

#endif
