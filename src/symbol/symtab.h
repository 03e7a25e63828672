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

/** `main` or `debug` may be NULL. Never returns NULL. */
struct symbol_table *symbol_table_new(Elf *main, Elf *debug, struct symbol_names *names);
void symbol_table_free(struct symbol_table *t);

/** Returns the readable name of the function that contains the address, or NULL. */
const char *symbol_table_find(struct symbol_table *t, uint64_t address);

/**
 * Returns the readable name of the function at `entry` that DWARF calls `raw`. The name with the fewest
 * leading underscores wins: for __GI___libc_malloc in libc that is malloc. A mangled name stays; a plain name
 * is replaced by a mangled one, which says more. Returns NULL when raw is NULL and there is no symbol.
 */
const char *symbol_table_alias(struct symbol_table *t, uint64_t entry, const char *raw);

#endif
