/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_SCOPES_H
#define SYMBOL_SCOPES_H

/*
 * Functions, inlined calls and source lines from DWARF. Each unit and each function is read once, when first
 * needed.
 *
 * dwarf_getscopes() walks a unit from its top for every address, and returns abstract parents for inlined
 * code, so that the callers need a second walk. Here the ranges of a unit's functions are sorted once, and so
 * are the ranges of the inlined calls in each function that is looked up. Then an address costs a few binary
 * searches.
 *
 * Runs in: the tool.
 * Owns: its indexes. It borrows the Dwarf handle and the symbol table, which must live longer.
 */

#include "symbol/symbol.h"
#include "symbol/symbol_names.h"
#include "symbol/symtab.h"

#include <elfutils/libdw.h>

struct symbol_scopes;

struct symbol_frame_list VEC(struct symbol_frame);

/** `split`: whether files that the DWARF names (.dwo) may be opened. Never returns NULL. */
struct symbol_scopes *symbol_scopes_new(Dwarf *dwarf, struct symbol_table *table, struct symbol_names *names,
                                        bool split);
void symbol_scopes_free(struct symbol_scopes *s);

/**
 * Appends the frames of one address, innermost first, and returns true. Returns false, with nothing appended,
 * when no unit covers the address. When the unit has lines but no function there (assembly), appends one
 * frame whose function is NULL.
 */
bool symbol_scopes_find(struct symbol_scopes *s, uint64_t address, struct symbol_frame_list *out);

#endif
