/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_TAG_BRIDGE_H
#define AGENT_TAG_BRIDGE_H

/*
 * The agent's side of target/agent_api.h: reports to the tag library each object that free() or realloc() releases.
 *
 * Runs in: target. Threads: any.
 */

#include "base/sigsafe/compiler.h"
#include "target/agent_api.h"

/**
 * The functions of the tag library. NULL: the library is not loaded, has not called allium_agent_api() yet, or got NULL
 * from it (because it has another AGENT_API_VERSION, for example).
 */
extern const struct agent_api_tags *agent_api_tags __attribute__((visibility("hidden")));

/*
 * The cold halves of the hooks call tag_bridge_released() before the real free(), tag_bridge_take() before the real
 * realloc(), and tag_bridge_moved() after it. Without the tag library these functions do nothing.
 */
static inline void tag_bridge_released(const void *p)
{
    if (unlikely(agent_api_tags != NULL))
        agent_api_tags->released(p);
}

/* An object that is about to be reallocated, and that the tag library has removed from its map. */
struct tag_bridge_taken {
    struct object object;
    bool tagged; /* false: no tag has allocated the object; `object` is not set */
};

static inline struct tag_bridge_taken tag_bridge_take(const void *p)
{
    struct tag_bridge_taken taken = {.tagged = false};
    if (unlikely(agent_api_tags && p))
        taken.tagged = agent_api_tags->take(p, &taken.object);
    return taken;
}

static inline void tag_bridge_moved(const struct tag_bridge_taken *taken, const void *old, const void *now,
                                    size_t size)
{
    if (unlikely(taken->tagged))
        agent_api_tags->moved(&taken->object, old, now, size);
}

#endif
