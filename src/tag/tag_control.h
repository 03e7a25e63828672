/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAG_CONTROL_H
#define TAG_TAG_CONTROL_H

/*
 * Applies the control page (wire/control_page.h) to tags: whether a tag is counted, recorded by stack, timed, or made
 * to fail.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Invariant: any process of the user may have written the page. It is checked at each use.
 */

#include <stdbool.h>
#include <stdint.h>

#include "allium/tag.h"
#include "target/deferred_match.h"
#include "wire/ledger.h"

#define TAG_CONTROL_COUNTED (1u << 31) /* beside the bits of enum ledger_action_kind */

static inline bool tag_control_asks(uint32_t asked, enum ledger_action_kind what)
{
    return asked >> what & 1;
}

/**
 * Returns what the rules ask of the tag now, and writes it into the state of the tag. `a`: the rule, if there is one.
 * If more than counting is asked of the tag, it comes here at each call; else once after each change of the page.
 */
uint32_t tag_control_lookup(struct allium_tag *tag, struct deferred_target *place, struct ledger_action *a);
/** Turns the tag off until the page changes. A tag that leads to no page stays as it is. */
void tag_control_turn_off(struct allium_tag *tag);
/** Is the tag's copy of the control page between these addresses? */
bool tag_control_is_between(const struct allium_tag *tag, const char *start, const char *end);
/**
 * Does the rule make this call fail? `calls`: the counter of the tag, with the serial of the rule; it is increased.
 */
bool tag_control_fails(const struct ledger_action *a, uint64_t *calls);
/** Maps the control page of the process where the tag's module expects it. NULL: there is none. */
void tag_control_show(const struct ledger_control *of, const struct allium_tag *tag);
/** The same for all known modules that are still loaded: in a fork child, which has another control page. */
void tag_control_show_again(const struct ledger_control *of);
#endif
