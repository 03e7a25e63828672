/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROFILE_NAMES_H
#define COLLECT_PROFILE_NAMES_H

/* Gives each location of a profile its names. */

#include "model/profile/profile.h"
#include "symbol/calls.h"

/** Names the locations without names; `root` is put before module paths ("/proc/PID/root" or ""). */
void profile_names_apply(struct symbols *symbols, struct profile *p, const char *root);
/** Opens the file of a module for its calls; NULL: it is not here, or not the one that was loaded. */
struct symbol_calls *profile_names_calls(const struct profile *p, uint32_t module);
/** Returns the directory of the symbol cache ($XDG_CACHE_HOME/allium/symbols or below ~/.cache), made if
 * needed; NULL: none. */
char *profile_names_cache_dir(void);

#endif
