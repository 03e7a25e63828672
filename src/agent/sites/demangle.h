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
 * Writes the qualified name of a function, without parameters. Template arguments become <>, and a function inside
 * another one becomes "function::{local}". A symbol that is not mangled is copied up to its first point (.part.0). The
 * output ends before the first part that the function does not understand. Returns the length.
 */
size_t demangle_name(const char *symbol, char *out, size_t size);

/** Returns a pointer to the first three characters of that name, found in `symbol` without demangling. NULL: this needs
 * a whole demangling, or the name is shorter. */
const char *demangle_beginning(const char *symbol);

#endif
