/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITE_RULES_H
#define AGENT_SITE_RULES_H

/*
 * Applies rules of `allium set` to call sites: such a rule requests the stacks of a site's calls.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/process.h"
#include "unwind/walk.h"

/** Reserves address space for the functions below. Called once. */
void site_rules_begin(void);
/** Forgets the sites and rules of an earlier ledger. Called after a new ledger and its control page were made. */
void site_rules_begin_ledger(void);
/** Returns true if the rules in force request the stacks of site `number`, whose call in `module` returns to `pc`.
 * `state` is the state of the control page. */
bool site_rules_want_stacks(const struct ledger_control *c, int32_t state, uint32_t number, uint32_t module,
                            uintptr_t pc);
/**
 * Counts a call of site `number` that has allocated `size` bytes, under its stack: the frame `from` and its callers. If
 * there is no room, counts a loss.
 */
void sites_count_stack(struct thread *t, const struct walk_start *from, uint32_t number, size_t size);

#endif
