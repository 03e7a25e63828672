/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_WRAPPER_MATCH_H
#define AGENT_WRAPPER_MATCH_H

/*
 * Wrappers: functions that only pass on the requests of their callers. A function is a wrapper if its name matches a
 * pattern of share/allium/wrappers, a list that is built in, or of ALLIUM_WRAPPERS. If several patterns match, the last
 * one decides: a pattern after '!' says that the function is not a wrapper.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Owns: for each module that allocates, the addresses of its wrappers, found once by the symbol table of its file.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

/** Called once, when the agent is initialised. `own`: patterns of ALLIUM_WRAPPERS, separated by ';'; NULL: none. */
void wrappers_begin(const char *own);
/** Returns true if the code at pc belongs to a wrapper. `module`: the index in unwind_modules of the module of pc. */
ONE_COPY bool wrappers_have(uint32_t module, uintptr_t pc);

#endif
