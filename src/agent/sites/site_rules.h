/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITE_RULES_H
#define AGENT_SITE_RULES_H

/*
 * Call sites of which `allium set` asks for more than to count them: who makes these calls.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/process.h"
#include "unwind/walk.h"

/** Takes what memory it needs; once. */
void sites_asked_begin(void);
/** A new ledger is there, and its control page. */
void sites_asked_begin_ledger(void);
/**
 * Are stacks asked for of the site with that number, whose call in that module returns to pc, while the page is at that
 * state?
 */
bool sites_stacks_asked(const struct ledger_control *c, int32_t state, uint32_t number, uint32_t module,
                        uintptr_t pc);
/** One more call of it, that `from` comes from. */
void sites_count_stack(struct thread *t, const struct walk_start *from, uint32_t number, size_t size);

#endif
