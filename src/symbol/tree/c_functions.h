/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_C_FUNCTIONS_H
#define SYMBOL_C_FUNCTIONS_H

/*
 * The functions that the text of a C file defines, in the style of the kernel. Macros are not expanded: the names that
 * SYSCALL_DEFINE3(open, ...) and the like make are known, others are not found.
 *
 * In text that is not valid C, some functions are missed, or wrong names are found. Both branches of #if are read, but
 * not the first one of #if 0. A brace in the first column ends a function, so that a function that is not understood
 * does not hide the functions after it.
 *
 * Runs in: the tool. Threads: any. Owns: nothing.
 */

#include <stddef.h>
#include <stdint.h>

/** Called for each name. `name` is not terminated; it is valid during the call. */
typedef void (*c_function_found)(void *arg, const char *name, size_t len, uint32_t line);

/** Reads the text of a file, which need not be terminated. */
void c_functions_find(const char *text, size_t len, c_function_found found, void *arg);

#endif
