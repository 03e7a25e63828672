/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_KERNEL_SYMBOLS_H
#define SYMBOL_KERNEL_SYMBOLS_H

/*
 * Names for addresses of the kernel's code: its own, its modules', BPF programs', trampolines. Not files and lines:
 * symbol/kernel_source.h; not user space: symbol/symbol.h.
 *
 * Modules and BPF programs come and go. The table is read again when an address falls into no symbol, and when it falls
 * into one that may have gone meanwhile and the modules or BPF programs are others than before; at most once a second.
 * What was there once and is not replaced keeps its name.
 *
 * Runs in: the tool. Threads: one at a time.
 * Owns: every text handed out, until kernel_symbols_free().
 * Invariant: no name is guessed: beyond the end of the kernel's code, of a module or of what BPF can be there is none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kernel_symbols;

struct kernel_symbol {
    const char *name;     /* as kallsyms has it: "ext4_free_inode.part.0" */
    const char *function; /* to group by: without what the compiler added, "ext4_free_inode" */
    const char *module;   /* "ext4", "bpf", "__builtin__ftrace"; "": the kernel itself */
    uint64_t offset;      /* from where the symbol begins, bytes */
    bool gone;            /* it is there no more */
};

/**
 * Reads the table, some 0.1 s. `root` goes before "/proc", "/sys", "/boot" and so on: "" but for tests. 0; or -EPERM:
 * the kernel shows no addresses to us; -ENOENT: it has no kallsyms; what reading it gave.
 */
int kernel_symbols_new(const char *root, struct kernel_symbols **out, struct error *e);
/** NULL is allowed. */
void kernel_symbols_free(struct kernel_symbols *k);
/** From now on it does with what it has read, also where that is old: reading takes some MiB of memory. */
void kernel_symbols_settle(struct kernel_symbols *k);

/** An address of a byte inside the instruction meant: for a return address, one less. False: no symbol is there. */
bool kernel_symbols_find(struct kernel_symbols *k, uint64_t address, struct kernel_symbol *out);

/** "ext4_free_inode.part.0" -> "ext4_free_inode"; owned by k. */
const char *kernel_symbols_function(struct kernel_symbols *k, const char *name);

/** Where the kernel's own code begins, as it lies in memory (_stext); 0: not told. */
uint64_t kernel_symbols_begin(const struct kernel_symbols *k);

/** How often the table was read, the first time counts. */
unsigned kernel_symbols_reads(const struct kernel_symbols *k);

#endif
