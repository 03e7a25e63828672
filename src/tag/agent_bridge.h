/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_AGENT_BRIDGE_H
#define TAG_AGENT_BRIDGE_H

/* The tag library's side of target/agent_api.h: finds the agent, and calls it.
 *
 * Runs in: target, cold paths. Threads: any. */

#include "target/agent_api.h"

/**
 * The functions of the agent. NULL: there is no agent in the process, or one of another build, or agent_bridge_begin()
 * was not called yet.
 */
extern const struct agent_api_agent *agent_api_agent __attribute__((visibility("hidden")));

/** Finds the agent and registers with it. Called once, when the tag library is initialised. */
void agent_bridge_begin(void);

/**
 * Returns whether the agent keeps accounts of call sites. If it does, agent_bridge_charged() must be called for each
 * object that is charged to a tag, so inline code of the program must not charge objects.
 */
static inline bool agent_bridge_has_sites(void)
{
    return agent_api_agent && agent_api_agent->charged;
}

/** Tells an agent with call sites that the object at `p` was charged to the account of a tag. */
static inline void agent_bridge_charged(const void *p, uint32_t account)
{
    if (agent_bridge_has_sites())
        agent_api_agent->charged(p, account);
}

#endif
