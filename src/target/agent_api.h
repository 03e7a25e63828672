/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_AGENT_API_H
#define TARGET_AGENT_API_H

/*
 * The functions by which the agent and liballium.so work together in one process. Both write to one ledger, which the
 * agent makes, and the agent's hooks of free() and realloc() serve both. When liballium.so starts, it calls
 * allium_agent_api(), the only function that the agent exports for it, through a weak symbol. The program may link
 * liballium.so or load it later; if the agent is not initialised by then, this call initialises the agent.
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

/** If agent and liballium.so were built with different values, they do not work together. */
#define AGENT_API_VERSION (LEDGER_VERSION << 8 | 5u)

/**
 * The functions of liballium.so that the agent calls. "The map" is the map of objects (object_map.h) of liballium.so.
 * It has an entry for each object that a tag has allocated; the entry is removed before the object is freed.
 */
struct agent_api_tags {
    uint32_t version;
    /** Returns whether the object is in the map. */
    bool (*holds)(const void *p);
    /** Removes an object that is about to be freed from the map, and counts the free. False: it is not in the map. */
    bool (*released)(const void *p);
    /**
     * Moves the entry of an object that is about to be reallocated from the map to *o. The agent then calls realloc()
     * and moved(). False: the object is not in the map.
     */
    bool (*take)(const void *p, struct object *o);
    /**
     * Counts a realloc() of the object at `old` to `bytes` bytes, for the tag of the object (*o: its entry). `now`: the
     * result of realloc(). If `now` is NULL and `bytes` is 0, the object was freed. If `now` is NULL and `bytes` is not
     * 0, realloc() has failed: then moved() counts nothing, and puts the entry back into the map.
     */
    void (*moved)(const struct object *o, const void *old, const void *now, size_t bytes);
    /**
     * child_begins() is called before the calling thread makes a child that shares its memory and its thread-local
     * storage; child_ended() is called after that child has ended, with the result of child_begins() (0 to 3). In
     * between liballium.so writes no event of the thread into a CPU's ring.
     */
    unsigned (*child_begins)(void);
    void (*child_ended)(unsigned before);
};

enum agent_api_answer {
    AGENT_API_OPEN,  /* the process has a ledger */
    AGENT_API_LATER, /* no ledger yet: another thread is making the ledger, for example */
    AGENT_API_NEVER, /* the process cannot have a ledger */
};

/** The agent's functions. */
struct agent_api_agent {
    /** Makes the ledger if there is none. AGENT_API_OPEN: the agent's struct ledger has been copied to *l. */
    enum agent_api_answer (*open)(struct ledger *l);
    /**
     * Moves an object that was just allocated from the account of its call site to the account of a tag. `charged` is
     * NULL if the agent does not count call sites.
     */
    void (*charged)(const void *p, uint32_t account);
    /** The counters of reserved address space: agent and liballium.so together take at most an eighth of RLIMIT_AS. */
    struct headroom_space *space;
};

/**
 * Exported by the agent. liballium.so calls this once, when it starts. NULL: the agent and liballium.so were built with
 * different values of AGENT_API_VERSION, or the agent is inactive, or this was called before.
 */
const struct agent_api_agent *allium_agent_api(const struct agent_api_tags *tags);

struct sequence_rings; /* ring/sequence_x86_64.h */

/** The agent's rings, until the process forks or ends. */
struct agent_api_rings {
    const struct sequence_rings *rings;
    const bool *clock_is_tsc; /* nobody may write into them by a sequence while this is false */
};

/**
 * Exported by the full agent: writes an event of the program (ring/ring_layout.h) of `words` words into its rings. The
 * first word and the thread in the second one are filled in. `event` NULL: nothing is written. `version`:
 * AGENT_API_VERSION. False: the agent does not trace, or was built with another version.
 *
 * AGENT_API_ABORTED may be set in `words`, beside the number of words: a sequence for this event was aborted. The agent
 * counts that.
 *
 * AGENT_API_ASKS_CHILD in place of `words`: returns whether the thread must not write into a CPU's ring, because it
 * runs in a child that the agent's vfork() or clone() has made. The answer is valid also if the agent does not trace.
 * AGENT_API_ASKS_RINGS: `event` is a struct agent_api_rings, which is filled in. False: nobody may write into them.
 * AGENT_API_LOST: the agent counts an event that is lost, as liballium.so has no number for it.
 */
#define AGENT_API_ABORTED    (1u << 30)
#define AGENT_API_ASKS_CHILD (1u << 31)
#define AGENT_API_ASKS_RINGS (1u << 31 | 1)
#define AGENT_API_LOST       (1u << 31 | 2)
bool allium_agent_trace(uint32_t version, uint64_t *event, uint32_t words);

#endif
