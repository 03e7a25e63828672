/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_AGENT_API_H
#define TARGET_AGENT_API_H

/*
 * What the agent and liballium.so have to say to each other where both are in a process: there is one ledger, which the
 * agent makes, and one hook sees each free. The library calls the agent's one function when it begins; a weak symbol
 * leads to it. So the library may come first, with the program or later, and the agent begins then at the latest.
 *
 * Runs in: target. Threads: any, signal handlers included.
 * Invariant: what is charged to a tag is charged to no call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/object_map.h"
#include "wire/headroom.h"
#include "wire/ledger_make.h"

/** Another number: of another build, with which nothing is shared. */
#define AGENT_API_VERSION (LEDGER_VERSION << 8 | 2u)

/** The library's side. Its objects are those of tags; they leave its map before they are given back. */
struct agent_api_tags {
    uint32_t version;
    /** Is it in the map? */
    bool (*holds)(const void *p);
    /** The object is about to be freed. False: it is not in the map. */
    bool (*gone)(const void *p);
    /** The same before realloc(), which comes after it. */
    bool (*take)(const void *p, struct object *o);
    /** It did: `now` takes the place of `old`, for the same tag; NULL: with `bytes` it failed, else it was freed. */
    void (*moved)(const struct object *o, const void *old, const void *now, size_t bytes);
};

enum agent_api_answer {
    AGENT_API_OPEN,  /* the ledger is there, and this process's own */
    AGENT_API_LATER, /* somebody is about to make it */
    AGENT_API_NEVER, /* it cannot be had */
};

/** The agent's side. */
struct agent_api_agent {
    /** What the library shall know of the ledger, which is made now if need be. */
    enum agent_api_answer (*open)(struct ledger *l);
    /**
     * With accounts of call sites, else NULL: the object just made is the tag's that has this account, and no call's.
     */
    void (*charged)(const void *p, uint32_t account);
    /** Where both count the address space that they take: an eighth of a limit is for both together. */
    struct headroom_space *space;
};

/** What the agent exports; NULL: it is of another build. Called once, in a process that is not under seccomp yet. */
const struct agent_api_agent *allium_agent_api(const struct agent_api_tags *tags);

#endif
