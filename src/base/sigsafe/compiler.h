/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_COMPILER_H
#define BASE_SIGSAFE_COMPILER_H

/* What the compiler is told about code of the target. */

/* Not copied into its callers: the agent is optimised as a whole, and much of it runs seldom. */
#define ONE_COPY __attribute__((noinline))

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#endif
