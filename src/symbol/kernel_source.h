/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_KERNEL_SOURCE_H
#define SYMBOL_KERNEL_SOURCE_H

/*
 * The source of an address in the kernel: files, lines and inlined functions, from a vmlinux with debug
 * information. Only for the kernel's own code: the files of modules are not read.
 *
 * File names are relative to the top of the kernel's tree ("mm/slub.c"). The prefix to remove is what
 * precedes "init/main.c" in the file of start_kernel(). If there is no such function, or a file has another
 * prefix, the name stays as the compiler got it.
 *
 * Runs in: the tool. Threads: one at a time.
 * Owns: nothing that it returns: names and frames belong to `symbols`.
 */

#include <stdbool.h>
#include <stdint.h>

#include "symbol/kernel_symbols.h"
#include "symbol/symbol.h"
#include "symbol/vmlinux.h"

struct kernel_source;

/** Never returns NULL. All three arguments must live longer than the result. */
struct kernel_source *kernel_source_new(const struct vmlinux *v, struct kernel_symbols *k,
                                        struct symbols *symbols);
/** NULL is allowed. */
void kernel_source_free(struct kernel_source *s);

/**
 * Fills `out` with the functions at an address, innermost first, as symbols_resolve() does. The address is
 * that of a byte inside the instruction: for a return address, one less. Returns false if there are none: the
 * address belongs to a module, to BPF, to no kernel code, or to code without debug information.
 */
bool kernel_source_frames(struct kernel_source *s, uint64_t address, struct symbol_frames *out);
/** Returns the frame's file, relative to the top of the tree; NULL: not known. */
const char *kernel_source_file(const struct kernel_source *s, const struct symbol_frame *frame);

/**
 * Like kernel_source_frames(), without the innermost functions that are defined in headers: kmalloc(), for example. At
 * least one stays.
 */
bool kernel_source_call_frames(struct kernel_source *s, uint64_t address, struct symbol_frames *out);

/**
 * Returns the source line that people mean by a call at the address: that of the innermost inlined function
 * that no header defines. A function from a header (kmalloc(), alloc_skb()) counts as part of the file that
 * includes it. NULL: not known.
 */
const struct symbol_frame *kernel_source_call(struct kernel_source *s, uint64_t address);

#endif
