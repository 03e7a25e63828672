/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_ACCOUNTS_H
#define COLLECT_TRACE_ACCOUNTS_H

/*
 * Makes accounts of call sites from a profile that was made from a trace. Usable sizes are not known. The objects of a
 * wrapper are charged to the wrapper: a trace does not have its callers.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "collect/trace/trace_profile.h"
#include "model/accounts/accounts.h"
#include "model/profile/wrappers.h"

/** Adds the accounts of all images to `a`, by place. The profile has names. `calls` and `counts` came with it. */
void trace_accounts_add(struct accounts *a, struct alloc_texts *texts, const struct profile *p,
                        const struct object_calls *calls, const struct trace_profile_counts *counts,
                        const struct wrappers *wrappers);

#endif
