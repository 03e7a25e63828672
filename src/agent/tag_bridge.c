/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/tag_bridge.h"

#include "agent/hooks/cold.h"
#include "agent/hooks/hooks.h"
#include "agent/hooks/jump_patch.h"
#include "agent/sampler/live_filter.h"

const struct agent_api_tags *agent_api_tags;

/* The functions that the hooks of free() and realloc() jumped to before install_hooks(). */
static struct {
    void (*free)(void *);
    void *(*realloc)(void *, size_t);
} behind;

/* free_with_tags() and realloc_with_tags() end in tail jumps: the hooks of sites need the program's return address. */
static void free_with_tags(void *p)
{
    agent_api_tags->released(p);
    behind.free(p);
}

static COLD void *move_cold(void *old, size_t size)
{
    struct tag_bridge_taken taken = tag_bridge_take(old);
    void *p = behind.realloc(old, size);
    tag_bridge_moved(&taken, old, p, size);
    return p;
}

static void *realloc_with_tags(void *old, size_t size)
{
    if (likely(!old || !agent_api_tags->holds(old)))
        return behind.realloc(old, size);
    return move_cold(old, size);
}

/*
 * Makes the hooks of free() and realloc() report to the tag library first, by new pointers. If jump_patch_apply() has
 * rewritten the jumps, new pointers have no effect: then sets the live filter so that each call takes its cold half.
 */
static void install_hooks(void)
{
    void *(**realloc)(void *, size_t) =
        hooks_count_realloc()
            ? &next_hot.realloc
            : &next_entries.realloc; /* else only the allocator's call of free() would report: too late */
    behind.free = next_hot.free;
    behind.realloc = *realloc;
    next_hot.free = free_with_tags;
    *realloc = realloc_with_tags;
    if (jump_patch_is_applied() && live_filter_open_all())
        __builtin_memset(live_filter_counts, LIVE_FILTER_STUCK, sizeof(live_filter_counts));
}

static enum agent_api_answer open_ledger(struct ledger *l)
{
    struct thread *t = &thread_self;
    for (int tries = 0; tries < 2; tries++) {
        process_wait();
        if (process_ensure_current(t) && process_open_ledger())
            break;
    }
    uint32_t stage = load_acquire(&process.stage);
    if (process_is_known(t) &&
        (stage == LEDGER_STAGE_FAILED || (stage == LEDGER_STAGE_NONE && process.ledger.sealed)))
        return AGENT_API_NEVER;
    if (!process_is_known(t) || stage != LEDGER_STAGE_MADE)
        return AGENT_API_LATER;
    ledger_keep_control(&process.ledger);
    *l = process.ledger;
    l->pool = NULL; /* the copy must not give out memory of the agent's pool */
    return AGENT_API_OPEN;
}

EXPORT const struct agent_api_agent *allium_agent_api(const struct agent_api_tags *tags)
{
    static struct agent_api_agent ours = {.open = open_ledger};
    boot_agent();
    if (tags->version != AGENT_API_VERSION || agent_api_tags || !process.generation)
        return NULL;
    ours.space = headroom_own_space();
    if (sites_on)
        ours.charged = sites->charge_tag;
    agent_api_tags = tags;
    install_hooks();
    return &ours;
}
