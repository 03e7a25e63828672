/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_RULES_H
#define TARGET_RULES_H

/*
 * What is asked of places from outside, in the lists behind the control page (wire/control_page.h,
 * wire/deferred_rules.h).
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Invariant: what stands in the page was written by anybody; it is checked at each use.
 */

#include <stdbool.h>
#include <stdint.h>

#include "target/deferred_match.h"
#include "wire/ledger.h"

/**
 * Returns the actions in force for the place, as bits of enum ledger_action_kind; `state` is the state of the
 * page. `a` gets the action, if there is one. `timed` becomes true if the result may change with time, without a
 * change of the page; else it stays as it was.
 */
uint32_t rules_lookup(const struct ledger_control *c, int32_t state, struct deferred_target *place,
                      struct ledger_action *a, bool *timed);
/** In a fork child, whose page is another. */
void rules_begin(void);

#endif
