/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_UNLOAD_H
#define AGENT_SITES_UNLOAD_H

/*
 * Modules that may be unloaded. While dlclose() runs, the hot functions count at no site in such a module: other code
 * may be loaded at its addresses, and the cold function must check this first.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock. Owns: dlclose().
 */

#include <stdbool.h>

#include "unwind/module.h"

/** Returns true if the agent will notice when the module is unloaded: then the hot functions may count at sites in it.
 * `m` must be loaded now, for example because code in it is running. */
ONE_COPY bool sites_unload_is_noticed(const struct unwind_module *m);

#endif
