/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_SYMTAB_H
#define SYMBOL_SYMTAB_H

/*
 * The function symbols of a module: .symtab, .dynsym and the stubs of its procedure linkage table.
 *
 * Runs in: the tool. Owns: its index; borrows the Elf handles, which must live longer.
 */

#include "symbol/symbol_names.h"

#include <libelf.h>

#include <stdint.h>

struct symbol_table;

/** `main` or `debug` may be NULL. Never NULL. */
struct symbol_table *symbol_table_new(Elf *main, Elf *debug, struct symbol_names *names);
void symbol_table_free(struct symbol_table *t);

/** Readable name of the function that holds the address, or NULL. */
const char *symbol_table_find(struct symbol_table *t, uint64_t address);

/**
 * Readable name for the function at `entry` that DWARF calls `raw`: people call malloc what libc calls
 * __GI___libc_malloc, so the name with the fewest leading underscores wins. Mangled names are left alone; a plain name
 * gives way to a mangled one, which says more. NULL when raw is NULL and there is no symbol.
 */
const char *symbol_table_alias(struct symbol_table *t, uint64_t entry, const char *raw);

#endif
