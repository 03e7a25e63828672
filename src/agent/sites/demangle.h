/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_DEMANGLE_H
#define AGENT_DEMANGLE_H

/*
 * Turns names of ELF symbols into readable names of functions. It knows the name mangling of the Itanium C++ ABI well
 * enough for names that are compared with patterns.
 *
 * Runs in: target, cold paths. Threads: pure functions.
 * Source: https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling
 */

#include <stddef.h>

/**
 * Writes the qualified name of the function with this symbol, without parameters, to `out`, which has room for `size`
 * bytes (at least 1), and returns its length without the NUL. Template arguments become <>. The name of a function that
 * is local to a function F becomes "F::{local}". A symbol that is not mangled is copied up to the first "." after its
 * first character (name.part.0). The name is cut where `out` ends or the symbol is not understood.
 */
size_t demangle_name(const char *symbol, char *out, size_t size);

/** Returns a text that begins with the same three characters as the name that demangle_name() writes for the symbol.
 * NULL: these are not known without demangling the symbol, or the name is shorter. */
const char *demangle_beginning(const char *symbol);

#endif
