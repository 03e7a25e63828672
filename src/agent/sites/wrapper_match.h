/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_WRAPPER_MATCH_H
#define AGENT_WRAPPER_MATCH_H

/*
 * Functions that only pass on what others ask for: by patterns of their names, those of share/allium/wrappers, built
 * in, and those that the process was started with.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Owns: for each module that allocates, where such functions lie in it, from the symbols of its file; found once.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

/** Once, from boot. `own`: patterns, each with a ';' behind it but the last, as lists have them a line; NULL: none. */
void wrappers_begin(const char *own);
/** Is the code at pc, which the module covers, part of one? */
ONE_COPY bool wrappers_have(uint32_t module, uintptr_t pc);

#endif
