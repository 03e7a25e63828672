/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_RESOLVE_H
#define AGENT_RESOLVE_H

/*
 * Finds the functions that the program would call without the agent: those of the modules behind the agent in the
 * search order. dlsym(RTLD_NEXT) would find them, too, but it takes the loader's lock, and calls malloc() if a symbol
 * is missing. If the agent was loaded after libc (resolve_is_late()), all other modules count as behind the agent.
 *
 * Runs in: target. Threads: any; meant for start-up, when no library is loaded or unloaded.
 */

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

/**
 * Returns whether the agent was loaded after libc: by dlopen(), or because the program is linked to it behind libc. If
 * so, no call of malloc() reaches the agent.
 */
ONE_COPY bool resolve_is_late(void);
/**
 * Returns the first function of this name in the modules behind the agent, and stores its module in *where (`where` may
 * be NULL). NULL: there is none.
 */
ONE_COPY void *resolve_next(const char *name, const struct link_map **where);
/** Returns the first function of this name in those modules behind the agent that were loaded with the program. */
ONE_COPY void *resolve_startup(const char *name);
/** Returns whether a module before the agent defines the function. If so, calls of it go to that module. */
ONE_COPY bool resolve_before(const char *name);
/** Returns the absolute path at which the loader found the agent. NULL: the path is relative, or unknown. */
const char *resolve_own_path(void);
/** Returns the function of this name that the module defines. NULL: there is none. */
ONE_COPY void *resolve_in(const struct link_map *module, const char *name);

#endif
