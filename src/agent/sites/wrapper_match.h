/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_WRAPPER_MATCH_H
#define AGENT_WRAPPER_MATCH_H

/*
 * Wrappers: functions that only pass on the requests of their callers. Patterns of names define them: the lists of
 * share/allium/wrappers, which are built in, and the patterns of ALLIUM_WRAPPERS.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Owns: for each module that allocates, the addresses of its wrappers, found once in the symbols of its file.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

/** Called once, when the agent is initialised. `own`: patterns of ALLIUM_WRAPPERS, separated by ';'; NULL: none. */
void wrappers_begin(const char *own);
/** Returns true if the code at pc, which lies in the module, belongs to a wrapper. */
ONE_COPY bool wrappers_have(uint32_t module, uintptr_t pc);

#endif
