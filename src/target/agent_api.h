/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_AGENT_API_H
#define TARGET_AGENT_API_H

/*
 * The functions by which the agent and liballium.so work together in one process. Both write to one ledger, which the
 * agent makes, and the agent's hook of free() serves both. At its start liballium.so calls allium_agent_api(), the only
 * function that the agent exports for it, as a weak symbol. The program may link liballium.so or load it later; if the
 * agent is not initialised by then, this call initialises it.
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

/** If agent and library were built with different numbers, they share nothing. */
#define AGENT_API_VERSION (LEDGER_VERSION << 8 | 2u)

/**
 * The functions of liballium.so. Its map holds the objects that tags have allocated; each is removed before it is
 * freed.
 */
struct agent_api_tags {
    uint32_t version;
    /** Is the object in the map? */
    bool (*holds)(const void *p);
    /** Counts an object that is about to be freed, and removes it from the map. False: it is not in the map. */
    bool (*released)(const void *p);
    /**
     * Moves the entry of an object that is about to be reallocated from the map to *o; the agent then calls moved().
     * False: the object is not in the map.
     */
    bool (*take)(const void *p, struct object *o);
    /**
     * Counts the realloc() of the object at `old`, which is at `now` afterwards, for the same tag. If `now` is NULL,
     * realloc() has freed the object (`bytes` is 0), or has failed: then the object goes back into the map.
     */
    void (*moved)(const struct object *o, const void *old, const void *now, size_t bytes);
};

enum agent_api_answer {
    AGENT_API_OPEN,  /* the process has a ledger */
    AGENT_API_LATER, /* another thread is making the ledger */
    AGENT_API_NEVER, /* the process cannot have a ledger */
};

/** The agent's functions. */
struct agent_api_agent {
    /** Stores a copy of the agent's struct ledger in *l; makes the ledger first if there is none. */
    enum agent_api_answer (*open)(struct ledger *l);
    /**
     * Moves an object that was just allocated from its call site to the account of a tag. The pointer is NULL if the
     * agent does not count call sites.
     */
    void (*charged)(const void *p, uint32_t account);
    /** The counters of reserved address space: agent and library together take at most an eighth of RLIMIT_AS. */
    struct headroom_space *space;
};

/**
 * Exported by the agent. liballium.so calls it once, before the process enters seccomp. NULL: the agent is of another
 * build.
 */
const struct agent_api_agent *allium_agent_api(const struct agent_api_tags *tags);

#endif
