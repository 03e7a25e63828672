/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_SYMBOL_NAMES_H
#define SYMBOL_SYMBOL_NAMES_H

/*
 * Makes raw symbols and paths readable, and stores each text once.
 *
 * Runs in: the tool. Owns: every string it returns, until symbol_names_release().
 * Invariant: no string it returns has a control character, so that no ELF file can send escape sequences to a
 * terminal.
 */

#include "base/hash_map.h"
#include "base/vec.h"

#include <stddef.h>

struct symbol_names {
    struct map by_text, by_symbol, by_path; /* -> index into kept */
    struct VEC(char *) kept;
};

void symbol_names_release(struct symbol_names *n);

/** Stores the text once and returns the stored copy. */
const char *symbol_names_store(struct symbol_names *n, const char *text);

/**
 * Returns the readable name of a function. Removes version, clone suffixes (.cold, .part.N, ...) and glibc's
 * __GI_. Demangles C++, Rust and D, with template arguments and without parameters, return type and Rust
 * hash. Returns NULL when raw is NULL or "".
 */
const char *symbol_names_function(struct symbol_names *n, const char *raw);

/**
 * Returns a path without "./", "//" and, as far as the text alone allows, "x/../". A relative path is put
 * behind `dir`, the compiler's directory, if `dir` is absolute or the path leads out of it. Returns NULL for
 * NULL, "" and "???".
 */
const char *symbol_names_path(struct symbol_names *n, const char *dir, const char *raw);

#endif
