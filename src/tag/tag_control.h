/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAG_CONTROL_H
#define TAG_TAG_CONTROL_H

/*
 * Applies the control page (wire/control_page.h) to tags: whether a tag is counted, recorded by stack, timed, or made
 * to fail.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Invariant: each value of the page is checked at each use, because any process of the user may have written it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "allium/tag.h"
#include "base/sigsafe/atomic.h"
#include "target/deferred_match.h"
#include "wire/ledger.h"

#define TAG_CONTROL_COUNTED (1u << 31) /* the tag is counted; other bits: 1 << enum ledger_action_kind */
#define TAG_CONTROL_TRACED  (1u << 30) /* each call is an event */

static inline bool tag_control_requests(uint32_t actions, enum ledger_action_kind kind)
{
    return actions >> kind & 1;
}

/** Returns the control page of the tag's module. */
static inline const struct ledger_control *tag_control_page(const struct allium_tag *tag)
{
    return (const struct ledger_control *)((const char *)&tag->control + tag->control);
}

/** Like allium_tag_state(), for a tag of any module: > 0: counted, and no rule requests more; 0: off; else < 0. */
static inline int tag_control_state(const struct allium_tag *tag)
{
    if (!load_relaxed(&tag->entry)) /* not registered yet: `control` was not checked */
        return -1;
    int32_t state = load_acquire(&tag->state), now = load_relaxed(&tag_control_page(tag)->state);
    return state == now ? 0 : state > now ? 1 : -1;
}

/**
 * Returns the actions that the rules request for the tag now, and TAG_CONTROL_COUNTED if it is counted; updates
 * tag->state. *a: receives the rule, if actions are returned. The rules are looked up once after each change of the
 * page, or at each request if they request more than counting or end at a certain time.
 */
uint32_t tag_control_lookup(struct allium_tag *tag, struct deferred_target *place, struct ledger_action *a);
/** Turns the tag off until `state` of the page changes. Does nothing if tag->control is 0 (no control page). */
void tag_control_turn_off(struct allium_tag *tag);
/** Returns whether tag->control leads to an address in [start, end) at which a page starts. */
bool tag_control_is_between(const struct allium_tag *tag, const char *start, const char *end);
/**
 * Returns whether the rule makes this call fail, and counts the call in *calls. The upper 16 bits of *calls are the
 * serial of the newest rule, the others the number of calls since that rule was set. A call under an older rule is not
 * counted, and does not fail.
 */
bool tag_control_fails(const struct ledger_action *a, uint64_t *calls);
/** Maps the control page `of` over the allium_control_page of the tag's module. Does nothing if `of` is NULL. */
void tag_control_show(const struct ledger_control *of, const struct allium_tag *tag);
/** The same, for the module whose allium_control_page this is. */
void tag_control_show_page(const struct ledger_control *of, const char *page);
/**
 * Makes `of` the control page of this process. In a fork child, also maps it over the allium_control_page of each known
 * module that is still loaded.
 */
void tag_control_show_again(const struct ledger_control *of);
#endif
