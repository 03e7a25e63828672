/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_UNLOAD_H
#define AGENT_SITES_UNLOAD_H

/*
 * Modules that may be unloaded: from before one is until after, the hot half counts at no site that is in such a
 * module, so that what comes to lie at its addresses is looked at first.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: dlclose().
 */

#include <stdbool.h>

#include "unwind/module.h"

/** May the hot half count there from now on? `m`: covers code that is being run. */
ONE_COPY bool sites_unload_will_tell(const struct unwind_module *m);

#endif
