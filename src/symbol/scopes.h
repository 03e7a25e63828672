/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_SCOPES_H
#define SYMBOL_SCOPES_H

/*
 * Functions, inlined calls and source lines from DWARF, each unit and each function read once, when first needed.
 *
 * dwarf_getscopes() walks a unit from its top for every address and returns abstract parents for inlined code, so that
 * a second walk is needed for the callers. Here the ranges of a unit's functions are sorted once, and so are those of
 * the inlined calls of each function that comes up; an address then costs a few binary searches.
 *
 * Runs in: the tool. Owns: its indexes; borrows the Dwarf handle and the symbol table, which must live longer.
 */

#include "symbol/symbol.h"
#include "symbol/symbol_names.h"
#include "symbol/symtab.h"

#include <elfutils/libdw.h>

struct symbol_scopes;

struct symbol_frame_list VEC(struct symbol_frame);

/** `split`: whether files that the DWARF names (.dwo) may be opened. Never NULL. */
struct symbol_scopes *symbol_scopes_new(Dwarf *dwarf, struct symbol_table *table, struct symbol_names *names,
                                        bool split);
void symbol_scopes_free(struct symbol_scopes *s);

/**
 * Appends the frames of one address, innermost first, and returns true; false, and nothing appended, when no unit has
 * it. When the unit has lines but no function there (assembly), one frame without a name is appended: function is NULL.
 */
bool symbol_scopes_find(struct symbol_scopes *s, uint64_t address, struct symbol_frame_list *out);

#endif
