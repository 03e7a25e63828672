/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_AGENT_BRIDGE_H
#define TAG_AGENT_BRIDGE_H

/*
 * The library's side of target/agent_api.h: whether there is an agent, and what it is told.
 *
 * Runs in: target, cold paths. Threads: any.
 */

#include "target/agent_api.h"

/** The agent; NULL: there is none, or of another build, or it has not been looked for yet. */
extern const struct agent_api_agent *agent_api_agent __attribute__((visibility("hidden")));

/** Looks for it; once, when the books begin. */
void agent_bridge_begin(void);

/**
 * The agent keeps accounts of call sites: what is charged to a tag has to be told, so that nothing may be charged in
 * between.
 */
static inline bool agent_bridge_has_sites(void)
{
    return agent_api_agent && agent_api_agent->charged;
}

static inline void agent_bridge_charged(const void *p, uint32_t account)
{
    if (agent_bridge_has_sites())
        agent_api_agent->charged(p, account);
}

#endif
