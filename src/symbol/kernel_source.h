/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_KERNEL_SOURCE_H
#define SYMBOL_KERNEL_SOURCE_H

/*
 * Where in the kernel's source the code at an address comes from: files, lines and inlined functions, by a vmlinux with
 * debug information. Of the kernel's own code only: modules have files of their own, which are not read.
 *
 * Files are named as from the top of the kernel's tree ("mm/slub.c"): what stands before "init/main.c" in the file of
 * start_kernel() is taken off. Where there is no such function, or a file lies elsewhere, its name is what the compiler
 * was given.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing that it hands out: names and frames belong to `symbols`.
 */

#include <stdbool.h>
#include <stdint.h>

#include "symbol/kernel_symbols.h"
#include "symbol/symbol.h"
#include "symbol/vmlinux.h"

struct kernel_source;

/** Never NULL. All three must live longer. */
struct kernel_source *kernel_source_new(const struct vmlinux *v, struct kernel_symbols *k,
                                        struct symbols *symbols);
/** NULL is allowed. */
void kernel_source_free(struct kernel_source *s);

/**
 * The functions that an address of a byte inside the instruction meant (for a return address, one less) is part of,
 * innermost first, as symbols_resolve() has them. False: there are none, as it is a module's, BPF's, none of the
 * kernel's, or not described.
 */
bool kernel_source_frames(struct kernel_source *s, uint64_t address, struct symbol_frames *out);
/** The frame's file, as from the top of the tree; NULL: not known. */
const char *kernel_source_file(const struct kernel_source *s, const struct symbol_frame *frame);

/**
 * The place that people mean by a call at the address: of the functions that are inlined there, the innermost that no
 * header has. What a header has (kmalloc(), alloc_skb()) is part of whoever includes it. NULL: not known.
 */
const struct symbol_frame *kernel_source_call(struct kernel_source *s, uint64_t address);

#endif
