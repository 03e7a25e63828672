/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_RULES_H
#define TARGET_RULES_H

/*
 * Finds the rule that `allium set` has made for a tag or call site: in the lists behind the control page
 * (wire/control_page.h), or among the deferred rules (wire/deferred_rules.h).
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Invariant: any process of the user may have written the control page. Its contents are checked at each use.
 */

#include <stdbool.h>
#include <stdint.h>

#include "target/deferred_match.h"
#include "wire/ledger.h"

/**
 * Returns the actions that the rules request for a place now, as bits of enum ledger_action_kind, and stores the rule
 * in *a. `state` is the state of the control page. Sets *timed if the result will change with time, without a change of
 * the page.
 */
uint32_t rules_lookup(const struct ledger_control *c, int32_t state, struct deferred_target *place,
                      struct ledger_action *a, bool *timed);
/** In a fork child: marks all lists as not readable yet, because the child has another control page. */
void rules_begin(void);

#endif
