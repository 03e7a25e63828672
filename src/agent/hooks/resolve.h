/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_RESOLVE_H
#define AGENT_RESOLVE_H

/*
 * Finds the functions that would be called without the agent, as dlsym(RTLD_NEXT) would, but without calling the
 * allocator (dlsym reports a missing symbol with malloc) and without the loader's lock: those of the modules behind the
 * agent in the search order. An agent that dlopen() brought stands behind all of them: then those of all other modules.
 *
 * Runs in: target. Threads: any; meant for start-up, when no library comes or goes.
 */

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

/** Was the agent loaded after libc: by dlopen(), or by a program linked so? No call then comes to it by itself. */
ONE_COPY bool resolve_is_late(void);
/** The next definition, and the module it is in (`where` may be NULL); NULL: none. */
ONE_COPY void *resolve_next(const char *name, const struct link_map **where);
/** The next definition among the modules that came with the program; NULL: none. */
ONE_COPY void *resolve_startup(const char *name);
/** Does a module before the agent define the function? Then calls go to that module. */
ONE_COPY bool resolve_before(const char *name);
/** The module that covers an address; NULL: none, or the loader is too old to say. */
ONE_COPY const struct link_map *resolve_module_of(uintptr_t address);
/** The path at which the loader found the agent; NULL: the path is relative, or the loader does not say. */
const char *resolve_own_path(void);
/** The definition in one module; NULL: none. */
ONE_COPY void *resolve_in(const struct link_map *module, const char *name);

#endif
