/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_SITE_NAMES_H
#define COLLECT_SITE_NAMES_H

/*
 * Names of call sites, as the key of an account has them (site_accounts.h).
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "model/accounts/accounts.h"
#include "model/profile/wrappers.h"
#include "symbol/calls.h"

/*
 * Names the row by the frames of its call, innermost first. `by_wrapper`: it calls a wrapper, which calls the
 * allocator. `calls` is the module of the call; NULL: its file is not here. A row that has a class keeps the class.
 */
void site_names_put(struct account_row *row, const struct symbol_frames *frames, bool by_wrapper,
                    const struct symbol_calls *calls, const struct wrappers *wrappers,
                    struct alloc_texts *texts);

#endif
