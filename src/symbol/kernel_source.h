/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_KERNEL_SOURCE_H
#define SYMBOL_KERNEL_SOURCE_H

/*
 * The source of code in the kernel and its modules: files, lines and inlined functions, from a vmlinux with debug
 * information and the debug files of modules (symbol/kernel_modules.h).
 *
 * What debug information does not tell, the functions of the kernel's source may tell by their names
 * (symbol/tree/source_finder.h): only the file, which KERNEL_SOURCE_BY_NAME follows, no line and no inlined function.
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

#include "symbol/function_index.h"
#include "symbol/kernel_symbols.h"
#include "symbol/symbol.h"
#include "symbol/vmlinux.h"

/** Behind the name of a file that was found by the name of the function. */
#define KERNEL_SOURCE_BY_NAME " ~"

struct source_finder;
struct kernel_source;

/**
 * Never returns NULL. All three arguments must live longer than the result. `v`: NULL if there is none. `k`: the
 * symbols of the running kernel, if vmlinux is its, or its source is searched by name; else NULL, and only offsets and
 * places have a source. `symbols`: may be NULL without vmlinux.
 */
struct kernel_source *kernel_source_new(const struct vmlinux *v, struct kernel_symbols *k,
                                        struct symbols *symbols);
/** Files that debug information does not tell are searched for by name; NULL: they are not. It must live longer. */
void kernel_source_use_finder(struct kernel_source *s, struct source_finder *finder);
/** NULL is allowed. */
void kernel_source_free(struct kernel_source *s);

/**
 * Fills `out` with the functions at an address, innermost first, as symbols_resolve() does. The address is
 * that of a byte inside the instruction: for a return address, one less. Returns false if there are none: the
 * address belongs to BPF, to no kernel code, or to code without debug information.
 */
bool kernel_source_frames(struct kernel_source *s, uint64_t address, struct symbol_frames *out);
/** Like the function above, for a byte of the kernel's own code at this offset from _stext. */
bool kernel_source_offset_frames(struct kernel_source *s, uint64_t offset, struct symbol_frames *out);

/** A place as traces name it. */
struct kernel_place {
    const char *module; /* "ext4"; "": the kernel itself */
    const char *function;
    uint64_t offset; /* of a byte inside the instruction */
    uint64_t bytes;  /* size of the function, as the kernel takes it; 0: not known */
};

/** Like kernel_source_frames(). `out` is set if the result is FUNCTION_ONE. */
enum function_found kernel_source_place_frames(struct kernel_source *s, const struct kernel_place *p,
                                               struct symbol_frames *out);
/** Returns whether more than one function of the kernel, or of a module, has this name. */
bool kernel_source_is_several(struct kernel_source *s, const char *module, const char *function);

/** Returns the frame's file, relative to the top of the tree; NULL: not known. */
const char *kernel_source_file(const struct kernel_source *s, const struct symbol_frame *frame);

/** Leaves out the innermost functions that are defined in headers. At least one stays. */
void kernel_source_skip_headers(struct symbol_frames *frames);
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
