/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_RESOLVE_H
#define AGENT_RESOLVE_H

/*
 * Finds functions in the modules behind us in the search order, as dlsym(RTLD_NEXT) would, but without calling the
 * allocator (dlsym reports a missing symbol with malloc) and without the loader's lock.
 *
 * Runs in: target. Threads: any; meant for start-up, when no library comes or goes.
 */

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

/** The first definition behind the agent, and the module it is in (`where` may be NULL); NULL: none. */
ONE_COPY void *resolve_next(const char *name, const struct link_map **where);
/** The first definition behind the agent among the modules that came with the program; NULL: none. */
ONE_COPY void *resolve_startup(const char *name);
/** Does a module before the agent define it? Then it is that one that is called. */
ONE_COPY bool resolve_before(const char *name);
/** The module that covers an address; NULL: none, or the loader is too old to say. */
ONE_COPY const struct link_map *resolve_module_of(uintptr_t address);
/** Where the loader found the agent; NULL: by a relative path, or it does not tell. */
const char *resolve_own_path(void);
/** The definition in one module; NULL: none. */
ONE_COPY void *resolve_in(const struct link_map *module, const char *name);

#endif
