/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_AGENT_API_H
#define TARGET_AGENT_API_H

/*
 * The functions by which the agent and liballium.so work together in one process. There is one ledger, which the
 * agent makes, and one hook sees each free(). When the library begins, it calls the only function that the agent
 * exports for this, through a weak symbol. The program may link the library or load it later; if the agent has not
 * begun by then, it begins in this call.
 *
 * Runs in: target. Threads: any, signal handlers included.
 * Invariant: an object that is charged to a tag is charged to no call site.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/object_map.h"
#include "wire/headroom.h"
#include "wire/ledger_make.h"

/** The other side has another number: it is of another build, and nothing is shared with it. */
#define AGENT_API_VERSION (LEDGER_VERSION << 8 | 2u)

/** The library's functions. Its objects are those of tags. Each leaves its map of objects before it is freed. */
struct agent_api_tags {
    uint32_t version;
    /** Is the object in the map? */
    bool (*holds)(const void *p);
    /** Takes the object, which is about to be freed, out of the map and counts it. False: it is not in the map. */
    bool (*gone)(const void *p);
    /**
     * Takes the object, which is about to be reallocated, out of the map; moved() follows. False: it is not there.
     */
    bool (*take)(const void *p, struct object *o);
    /**
     * Counts the reallocation of `old`, for the same tag: it is at `now`. `now` NULL: with `bytes` 0 the object was
     * freed; else the call failed, and the object goes back into the map.
     */
    void (*moved)(const struct object *o, const void *old, const void *now, size_t bytes);
};

enum agent_api_answer {
    AGENT_API_OPEN,  /* there is a ledger of this process */
    AGENT_API_LATER, /* another thread is about to make it */
    AGENT_API_NEVER, /* there can be none */
};

/** The agent's functions. */
struct agent_api_agent {
    /** Copies the description of the agent's ledger, which is made first if need be. */
    enum agent_api_answer (*open)(struct ledger *l);
    /**
     * Moves an object that was just allocated from its call site to the account of a tag. NULL: no call site is
     * counted.
     */
    void (*charged)(const void *p, uint32_t account);
    /** Where both count the address space that they take: an eighth of a limit is for both together. */
    struct headroom_space *space;
};

/** Exported by the agent; called once, before the process enters seccomp. NULL: the agent is of another build. */
const struct agent_api_agent *allium_agent_api(const struct agent_api_tags *tags);

#endif
