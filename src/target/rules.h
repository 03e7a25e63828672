/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_RULES_H
#define TARGET_RULES_H

/*
 * Finds the rule that `allium set` has made for a tag or call site: in the list of actions after the control
 * page (wire/control_page.h), or among the deferred rules (wire/deferred_rules.h).
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Invariant: any process of the user may have written the control page, so its contents are checked at each use.
 */

#include <stdbool.h>
#include <stdint.h>

#include "target/deferred_match.h"
#include "wire/ledger.h"

/**
 * Returns the actions that the rules request for a place now, as bits 1 << enum ledger_action_kind; 0: none. If a rule
 * applies, stores the rule in *a; several deferred rules are combined. `state` is the state of the control page. Sets
 * *timed to true if an action of the result has an end time: the result will change without a change of the page.
 */
uint32_t rules_lookup(const struct ledger_control *c, int32_t state, struct deferred_target *place,
                      struct ledger_action *a, bool *timed);
/** Called when the process gets another control page: marks all lists as not readable yet. */
void rules_begin(void);

#endif
