/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/tag_bridge.h"

#include "agent/hooks/cold.h"
#include "agent/hooks/hooks.h"
#include "agent/hooks/jump_patch.h"
#include "agent/sampler/live_filter.h"

const struct joint_tags *joint_tags;

/* Where hooks led before tags were asked. */
static struct {
    void (*free)(void *);
    void *(*realloc)(void *, size_t);
} behind;

/* These two are left by jumps where they can be: who counts sites sees the program's call. */
static void free_asking(void *p)
{
    joint_tags->gone(p);
    behind.free(p);
}

static COLD void *move_cold(void *old, size_t size)
{
    struct joint_taken taken = joint_take(old);
    void *p = behind.realloc(old, size);
    joint_moved(&taken, old, p, size);
    return p;
}

static void *realloc_asking(void *old, size_t size)
{
    if (likely(!old || !joint_tags->holds(old)))
        return behind.realloc(old, size);
    return move_cold(old, size);
}

/*
 * Tags are asked before what hooks lead to. Jumps that are direct by now stay what they are: then the filter sends every free to
 * the cold halves, which ask as well.
 */
static void stand_before_hooks(void)
{
    void *(**realloc)(void *, size_t) =
        hooks_count_realloc() ? &next_hot.realloc : &next_entries.realloc; /* its own free() comes too late */
    behind.free = next_hot.free;
    behind.realloc = *realloc;
    next_hot.free = free_asking;
    *realloc = realloc_asking;
    if (direct_jumps_are_set())
        __builtin_memset(filter_counts, FILTER_STUCK, sizeof(filter_counts));
}

static enum joint_answer open_ledger(struct ledger *l)
{
    struct thread *t = &thread_self;
    for (int tries = 0; tries < 2; tries++) {
        process_wait_for_others(t);
        if (process_settle(t) && process_open_ledger())
            break;
    }
    uint32_t stage = load_acquire(&process.stage);
    if (process_is_known(t) &&
        (stage == LEDGER_STAGE_FAILED || (stage == LEDGER_STAGE_NONE && process.ledger.sealed)))
        return JOINT_NEVER;
    if (!process_is_known(t) || stage != LEDGER_STAGE_MADE)
        return JOINT_LATER;
    ledger_keep_control(&process.ledger);
    *l = process.ledger;
    return JOINT_OPEN;
}

EXPORT const struct joint_agent *allium_joint(const struct joint_tags *tags)
{
    static struct joint_agent ours = {.open = open_ledger};
    boot_agent();
    if (tags->version != JOINT_VERSION || joint_tags || !next.malloc)
        return NULL;
    if (sites.on)
        ours.charged = sites_charge_tag;
    joint_tags = tags;
    stand_before_hooks();
    return &ours;
}
