/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_DEMANGLE_H
#define AGENT_DEMANGLE_H

/*
 * Names of functions as people know them, from those of ELF symbols: enough of the Itanium C++ ABI's mangling to
 * compare them with patterns.
 *
 * Runs in: target, cold paths. Threads: pure functions. Source:
 * https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling
 */

#include <stddef.h>

/**
 * The qualified name of a function, without parameters; template arguments are <>, and what is within a function is
 * "function::{local}". Names that are not mangled stay, without what compilers put behind a point (.part.0). What it
 * does not understand ends it. Returns the length.
 */
size_t demangle_name(const char *symbol, char *out, size_t size);

/**
 * Where the first three characters of that name stand, found at once; NULL: that takes the whole name, or it has fewer.
 */
const char *demangle_beginning(const char *symbol);

#endif
