/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_DEMANGLE_H
#define AGENT_DEMANGLE_H

/*
 * Turns names of ELF symbols into readable names of functions. It knows enough of the mangling of the Itanium
 * C++ ABI to compare the names with patterns.
 *
 * Runs in: target, cold paths. Threads: pure functions.
 * Source: https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling
 */

#include <stddef.h>

/**
 * Writes the qualified name of a function, without parameters. Template arguments become <>, and a function
 * inside another one becomes "function::{local}". A name that is not mangled stays, without a suffix after a
 * point (.part.0). The output ends at the first part that is not understood. Returns the length.
 */
size_t demangle_name(const char *symbol, char *out, size_t size);

/** Returns a pointer to the first three characters of that name, without demangling it. NULL: that would take
 * the whole name, or it has fewer characters. */
const char *demangle_beginning(const char *symbol);

#endif
