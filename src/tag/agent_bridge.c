/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/agent_bridge.h"

#include "tag/event_rings.h"
#include "tag/tag_internal.h"
#include "tag/tag_ledger.h"

const struct agent_api_agent *agent_api_agent;

/* Defined by the agent, which is preloaded. This weak symbol is NULL if the agent is not in the process. */
__attribute__((weak, visibility("default"))) const struct agent_api_agent *
allium_agent_api(const struct agent_api_tags *tags);

static bool holds(const void *p)
{
    return process_has_ledger() && object_map_has((uintptr_t)p);
}

/* The agent calls this at each free(). holds() comes first, because tag_object_take() attaches the thread to the
 * ledger, and a free() of an object without a tag must not do that. */
static bool released(const void *p)
{
    struct object o;
    if (!p || !holds(p) || !tag_object_take(p, &o))
        return false;
    tag_released(o.account, o.bytes);
    return true;
}

static bool take(const void *p, struct object *o)
{
    return holds(p) && tag_object_take(p, o);
}

static void moved(const struct object *o, const void *old, const void *now, size_t bytes)
{
    if (!now && bytes) {
        tag_object_put_back(old, *o);
        return;
    }
    tag_released(o->account, o->bytes);
    if (now)
        tag_object_add(o->account, now, bytes);
}

void agent_bridge_begin(void)
{
    static const struct agent_api_tags ours = {.version = AGENT_API_VERSION,
                                               .holds = holds,
                                               .released = released,
                                               .take = take,
                                               .moved = moved,
                                               .child_begins = event_rings_child_begins,
                                               .child_ended = event_rings_child_ended};
    if (allium_agent_api)
        agent_api_agent = allium_agent_api(&ours);
    if (agent_api_agent)
        headroom_share_space(agent_api_agent->space);
}
