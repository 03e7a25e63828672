/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_DIENAMES_H
#define SYMBOL_DIENAMES_H

/*
 * Readable names for the functions that DWARF entries describe, and steps through a tree that may be malformed.
 *
 * Runs in: the tool.
 * Owns: a cache of scoped names, until symbol_die_names_release(); the names belong to the pool.
 */

#include "symbol/symbol_names.h"
#include "symbol/symtab.h"

#include <stdbool.h>
#include <stdint.h>

#include <elfutils/libdw.h>

/** Returns whether the plain names in a unit need their scopes: compilers give no linkage name to a function
 * local to another. */
bool symbol_die_has_scopes(Dwarf_Die *unit);

struct symbol_die_names {
    struct symbol_names *names;
    struct symbol_table *table;
    struct map scoped; /* declaration -> index into kept */
    struct VEC(const char *) kept;
    uint64_t budget; /* DIEs and ranges still to be read from this file; no valid file has so many */
};

void symbol_die_names_release(struct symbol_die_names *d);

/** Moves to the first child. Returns false if there is none. */
bool symbol_die_first(struct symbol_die_names *d, Dwarf_Die *parent, Dwarf_Die *child);
/** Moves to the next DIE on this level. A malformed DW_AT_sibling may point back, so only moves forward are
 * accepted. */
bool symbol_die_next(struct symbol_die_names *d, Dwarf_Die *die);

/**
 * Returns the name of an inlined function or, when `entry` is not 0, of the function whose code begins there.
 * In a unit with `scopes` a plain name gets its scopes in front: "main::{lambda}::operator()". Returns NULL
 * when the function has no name.
 */
const char *symbol_die_name(struct symbol_die_names *d, Dwarf_Die *die, bool scopes, uint64_t entry);

#endif
