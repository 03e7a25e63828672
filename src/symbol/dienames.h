/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_DIENAMES_H
#define SYMBOL_DIENAMES_H

/*
 * Readable names for the functions that DWARF entries describe, and steps through a tree that may be malformed.
 *
 * Runs in: the tool. Owns: a cache of scoped names, until symbol_die_names_release(); the names belong to the pool.
 */

#include "symbol/symbol_names.h"
#include "symbol/symtab.h"

#include <stdbool.h>
#include <stdint.h>

#include <elfutils/libdw.h>

/** Whether a unit's plain names lack their scopes: compilers give no linkage name to what is local to a function. */
bool symbol_die_has_scopes(Dwarf_Die *unit);

struct symbol_die_names {
    struct symbol_names *names;
    struct symbol_table *table;
    struct map scoped; /* declaration -> index into kept */
    struct VEC(const char *) kept;
    uint64_t budget; /* DIEs and ranges still to be read from this file; more than any sound file has */
};

void symbol_die_names_release(struct symbol_die_names *d);

/** The first child, false when there is none. */
bool symbol_die_first(struct symbol_die_names *d, Dwarf_Die *parent, Dwarf_Die *child);
/** Moves to the next DIE on this level. A malformed DW_AT_sibling may point back: only forward counts. */
bool symbol_die_next(struct symbol_die_names *d, Dwarf_Die *die);

/**
 * The name of an inlined function or, when `entry` is not 0, of the one whose code begins there. A plain name in a unit
 * with `scopes` gets those before it: "main::{lambda}::operator()". NULL when it has no name.
 */
const char *symbol_die_name(struct symbol_die_names *d, Dwarf_Die *die, bool scopes, uint64_t entry);

#endif
