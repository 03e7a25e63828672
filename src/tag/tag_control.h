/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAG_CONTROL_H
#define TAG_TAG_CONTROL_H

/*
 * What is asked of tags from outside, by the control page (wire/ledger.h): which are counted, followed by stack, timed,
 * made to fail.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Invariant: what stands in the page was written by anybody; it is checked at each use.
 */

#include <stdbool.h>
#include <stdint.h>

#include "allium/tag.h"
#include "target/deferred_match.h"
#include "wire/ledger.h"

#define TAG_CONTROL_COUNTED (1u << 31) /* beside bits of enum ledger_action_kind */

static inline bool tag_control_asks(uint32_t asked, enum ledger_action_kind what)
{
    return asked >> what & 1;
}

/**
 * What is asked of a tag that is that place, now; its state says so from then on. `a`: the action, where there is one.
 * It is asked at each call for a tag of which more than counting is asked, else once for each change of the page.
 */
uint32_t tag_control_lookup(struct allium_tag *tag, struct deferred_target *place, struct ledger_action *a);
/** It is off, until the page changes; one that leads to no page stays as it is. */
void tag_control_turn_off(struct allium_tag *tag);
/** The page that the tag's module looks at lies there. */
bool tag_control_is_between(const struct allium_tag *tag, const char *start, const char *end);
/** Shall this call fail? `calls`: of the tag, with the action's serial; one more now. */
bool tag_control_fails(const struct ledger_action *a, uint64_t *calls);
/** The tag's module is known to look at this page, which is the process's; NULL: there is none. */
void tag_control_show(const struct ledger_control *of, const struct allium_tag *tag);
/** The same of all modules that are known and still there: in a fork child, whose page is another. */
void tag_control_show_again(const struct ledger_control *of);
#endif
