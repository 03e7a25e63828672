/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_RULES_H
#define TARGET_RULES_H

/*
 * Finds the rule that `allium set` has made for a tag or call site: in the lists behind the control page
 * (wire/control_page.h), or among the deferred rules (wire/deferred_rules.h).
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Invariant: any process of the user may have written the page. It is checked at each use.
 */

#include <stdbool.h>
#include <stdint.h>

#include "target/deferred_match.h"
#include "wire/ledger.h"

/**
 * Returns what the rules ask of a place now, as bits of enum ledger_action_kind; 0: nothing. `state`: the state of the
 * control page. `a`: the rule, if there is one. Sets *timed if the answer may change while the page stays as it is.
 */
uint32_t rules_lookup(const struct ledger_control *c, int32_t state, struct deferred_target *place,
                      struct ledger_action *a, bool *timed);
/** In a fork child: its control page is another one, of which nothing is readable yet. */
void rules_begin(void);

#endif
