/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_KERNEL_SYMBOLS_H
#define SYMBOL_KERNEL_SYMBOLS_H

/*
 * Names for addresses of kernel code: the kernel's own, its modules, BPF programs, trampolines. Files and
 * lines are in symbol/kernel_source.h, user space in symbol/symbol.h.
 *
 * Modules and BPF programs come and go. The table is read again when an address lies in no symbol, or when it
 * lies in a symbol that may have vanished and the set of modules or BPF programs has changed; at most once a
 * second. A vanished symbol keeps its name unless something else lies there.
 *
 * Runs in: the tool. Threads: one at a time. Owns: every text it returns, until kernel_symbols_free().
 * Invariant: no name is guessed. An address beyond the end of the kernel's code, of a module or of possible
 * BPF code has none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kallsyms;
struct kernel_symbols;

struct kernel_symbol {
    const char *name;     /* as kallsyms has it: "ext4_free_inode.part.0" */
    const char *function; /* without the suffixes that the compiler added, for grouping: "ext4_free_inode" */
    const char *module;   /* "ext4", "bpf", "__builtin__ftrace"; "": the kernel itself */
    uint64_t offset;      /* bytes from the beginning of the symbol */
    uint64_t bytes;       /* from there to the next symbol; 0: not known */
    bool gone;            /* the symbol is not in the kernel any more */
};

/**
 * Reads the table, which takes some 0.1 s. `root` is put before "/proc", "/sys", "/boot" and so on; it is ""
 * except in tests. Returns 0, -EPERM if the kernel shows no addresses to us, -ENOENT if it has no kallsyms,
 * or the error of reading it.
 */
int kernel_symbols_new(const char *root, struct kernel_symbols **out, struct error *e);
/** NULL is allowed. */
void kernel_symbols_free(struct kernel_symbols *k);
/** From now on the table is not read again, even if it is out of date: reading takes some MiB of memory. */
void kernel_symbols_freeze(struct kernel_symbols *k);

/** `address` is that of a byte inside the instruction: for a return address, one less. Returns false if no
 * symbol contains it. */
bool kernel_symbols_find(struct kernel_symbols *k, uint64_t address, struct kernel_symbol *out);

/** See kallsyms_byte_of_frame(). */
uint64_t kernel_symbols_byte_of_frame(const struct kernel_symbols *k, uint64_t address);

/** Removes the compiler's suffixes: "ext4_free_inode.part.0" -> "ext4_free_inode". k owns the result. */
const char *kernel_symbols_function(struct kernel_symbols *k, const char *name);

/** Returns the address in memory where the kernel's own code begins (_stext); 0: not known. */
uint64_t kernel_symbols_begin(const struct kernel_symbols *k);

/** Returns the table, as it was read last: the next search may read it again. */
const struct kallsyms *kernel_symbols_table(const struct kernel_symbols *k);
/** Returns how often the table was read, including the first time. */
unsigned kernel_symbols_reads(const struct kernel_symbols *k);

#endif
