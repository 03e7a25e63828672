/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_KERNEL_SYMBOL_ADDRESS_H
#define SYS_KERNEL_SYMBOL_ADDRESS_H

/*
 * The address of a variable of the kernel, and the size of a struct. libbpf finds an address by reading all
 * of /proc/kallsyms, some 0.2 s each time a tool is tried; the kernel finds a single name at once, for a
 * small BPF program.
 *
 * Runs in: the tool. Needs CAP_BPF and CAP_PERFMON. Before 5.16 the kernel has no such lookup, and the text
 * is read.
 */

#include <stdint.h>

/** Returns the address; 0: kallsyms does not have the name (it may have functions only), or addresses are
 * hidden. */
uint64_t kernel_symbol_address(const char *name);

/** Returns the size of a struct of the kernel, from its BTF; 0: not known. */
uint32_t kernel_struct_bytes(const char *name);

#endif
