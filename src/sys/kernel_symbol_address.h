/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_KERNEL_SYMBOL_ADDRESS_H
#define SYS_KERNEL_SYMBOL_ADDRESS_H

/*
 * Where a variable of the kernel lies, and how long a struct of its is. The loader finds it by reading all that
 * /proc/kallsyms has, some 0.2 s each time a tool is tried; the kernel finds one name at once, if a program of ours
 * asks.
 *
 * Runs in: the tool. Takes CAP_BPF and CAP_PERFMON; before 5.16 the kernel cannot be asked, and the text is read.
 */

#include <stdint.h>

/** Its address; 0: the kernel's names do not have it (they may have functions only), or are hidden. */
uint64_t kernel_symbol_address(const char *name);

/** How long a struct of the kernel is, by its BTF; 0: it does not tell. */
uint32_t kernel_struct_bytes(const char *name);

#endif
