/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_UNLOAD_H
#define AGENT_SITES_UNLOAD_H

/*
 * Modules that may be unloaded. From the start of a dlclose() until its end, the hot functions count at no site in such
 * a module. Later other code may be loaded at the addresses of the module: so at each site the cold function first
 * checks this, before the hot functions count there again.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock. Owns: the hook of dlclose().
 */

#include <stdbool.h>

#include "unwind/module.h"

/** Returns true if the hot functions may count at sites in the module: it is permanent, or no dlclose() is running and
 * the agent will notice an unloading. `m` must be loaded now, for example because code in it is running. */
ONE_COPY bool sites_unload_is_noticed(const struct unwind_module *m);

#endif
