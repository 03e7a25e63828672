/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_SYMBOL_NAMES_H
#define SYMBOL_SYMBOL_NAMES_H

/*
 * Raw symbols and paths made readable, each text kept once.
 *
 * Runs in: the tool. Owns: every string it returns, until symbol_names_release().
 * Invariant: no string it returns has a control character, so that no ELF file can steer a terminal.
 */

#include "base/hash_map.h"
#include "base/vec.h"

#include <stddef.h>

struct symbol_names {
    struct map by_text, by_symbol, by_path; /* -> index into kept */
    struct VEC(char *) kept;
};

void symbol_names_release(struct symbol_names *n);

/** The text itself, kept once. */
const char *symbol_names_keep(struct symbol_names *n, const char *text);

/**
 * A function's readable name: version, clone suffixes (.cold, .part.N, ...) and glibc's __GI_ removed, C++, Rust and D
 * demangled, with template arguments and without parameters, return type and Rust hash. NULL when raw is NULL or "".
 */
const char *symbol_names_function(struct symbol_names *n, const char *raw);

/**
 * A path without "./", "//" and, as far as the text alone allows, "x/../"; a relative one after `dir`, the compiler's
 * directory, if that is absolute or the path leads out of it. NULL for NULL, "" and "???".
 */
const char *symbol_names_path(struct symbol_names *n, const char *dir, const char *raw);

#endif
