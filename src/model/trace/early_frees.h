/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_EARLY_FREES_H
#define MODEL_EARLY_FREES_H

/*
 * Frees whose time is before that of their block's allocation.
 *
 * A CPU may read the time stamp counter while it still waits for the data of an earlier load. So if one CPU hands a
 * block to another one, the free may be stamped before the load that received the address is done, and thus some
 * nanoseconds before the allocation. With a fence that prevents this, each event would take half as long again.
 * Instead, the latest frees without a block are kept: if another CPU allocates a block at the address less than
 * EARLY_FREES_NS later, the free is taken to follow the allocation. A realloc() that leaves its block where it is may
 * take only 10 ns. A free that is stamped before that one's beginning, too, is not told from a free of the old block.
 *
 * Runs in: the tool. Threads: one at a time. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/trace/trace_event.h"

#define EARLY_FREES_NS 1000u
#define EARLY_FREES    32u

struct early_free {
    uint64_t image, address; /* address 0: none */
    uint64_t time_ns;
    uint32_t cpu, thread;
    uint32_t location;
    bool reallocates; /* it is the beginning of a realloc() */
};

/* All zeros: there are none. */
struct early_frees {
    struct early_free at[EARLY_FREES];
    unsigned next;
    uint64_t last_ns;
};

/** Notes a free without a block. */
void early_frees_note(struct early_frees *e, const struct early_free *f);
/** The same of an event. `address`: of the block; 0: nothing is noted. */
void early_frees_note_event(struct early_frees *e, const struct trace_event *end, uint64_t address,
                            bool reallocates);
/** Forgets the free that this thread's realloc() began with: the call has failed, and the block was not freed. */
void early_frees_take_back(struct early_frees *e, uint64_t image, uint32_t thread);
/** Part of early_frees_take(). */
bool early_frees_find(struct early_frees *e, uint64_t image, uint64_t address, uint32_t cpu, uint64_t now_ns,
                      struct early_free *out);

/** Returns whether a block that is allocated now was freed already; if so, moves that free to *out. */
static inline bool early_frees_take(struct early_frees *e, uint64_t image, uint64_t address, uint32_t cpu,
                                    uint64_t now_ns, struct early_free *out)
{
    if (__builtin_expect(now_ns - e->last_ns >= EARLY_FREES_NS, 1))
        return false;
    return early_frees_find(e, image, address, cpu, now_ns, out);
}

/** Returns whether the block at `address`, whose life begins with the event, was freed already. Forgets that free. */
static inline bool early_frees_take_event(struct early_frees *e, const struct trace_event *birth,
                                          uint64_t address)
{
    struct early_free f;
    return early_frees_take(e, birth->image_id, address, birth->cpu, birth->time_ns, &f);
}

#endif
