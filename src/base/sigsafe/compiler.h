/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_COMPILER_H
#define BASE_SIGSAFE_COMPILER_H

/* Hints for the compiler, for code of the target. */

/* Prevents inlining. Link-time optimisation would copy functions into several callers, though most run seldom. */
#define ONE_COPY __attribute__((noinline))

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#endif
