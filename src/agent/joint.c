/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/joint.h"

#include "agent/cold.h"
#include "agent/direct.h"
#include "agent/filter.h"
#include "agent/hooks.h"
#include "base/sigsafe/sys.h"

#define MAKING_WAITS 50000 /* turns of others; a few are usual */

const struct joint_tags *joint_tags;

/* Where hooks led before tags were asked. */
static struct {
    void (*free)(void *);
    void *(*realloc)(void *, size_t);
} behind;

/* These two are left by jumps where they can be: who counts sites sees the program's call. */
static void free_asking(void *p)
{
    joint_tags->gone(p);
    behind.free(p);
}

static char none; /* its address: of no object */

/* &none: it is no tag's, and has not moved. A function of its own, which has the address of a variable: such do not jump. */
static __attribute__((noinline)) void *move_tagged(void *old, size_t size)
{
    struct joint_taken taken = joint_take(old);
    if (likely(!taken.tagged))
        return &none;
    void *p = behind.realloc(old, size);
    joint_moved(&taken, old, p, size);
    return p;
}

static void *realloc_asking(void *old, size_t size)
{
    void *p = move_tagged(old, size);
    if (unlikely(p != &none))
        return p;
    return behind.realloc(old, size);
}

/*
 * Tags are asked before what hooks lead to. Jumps that are direct by now stay what they are: then the filter sends every free to
 * the cold halves, which ask as well.
 */
static void stand_before_hooks(void)
{
    void *(**realloc)(void *, size_t) =
        hooks_count_realloc() ? &next_hot.realloc : &next_entries.realloc; /* its own free() comes too late */
    behind.free = next_hot.free;
    behind.realloc = *realloc;
    next_hot.free = free_asking;
    *realloc = realloc_asking;
    if (direct_jumps_are_set())
        __builtin_memset(filter_counts, FILTER_STUCK, sizeof(filter_counts));
}

static enum joint_answer open_ledger(struct ledger *l)
{
    if (!process_settle(&thread_self))
        return JOINT_LATER;
    for (int n = 0; n < MAKING_WAITS && load_acquire(&process.stage) == LEDGER_STAGE_MAKING &&
                    load_relaxed(&process.maker) != &thread_self;
         n++)
        sys_call(SYS_sched_yield, 0);
    if (!process_open_ledger())
        return process.ledger.sealed || load_acquire(&process.stage) == LEDGER_STAGE_FAILED ? JOINT_NEVER
                                                                                            : JOINT_LATER;
    ledger_keep_control(&process.ledger);
    *l = process.ledger;
    return JOINT_OPEN;
}

EXPORT const struct joint_agent *allium_joint(const struct joint_tags *tags)
{
    static struct joint_agent ours = {.open = open_ledger};
    boot_agent();
    if (tags->version != JOINT_VERSION || joint_tags || !next.malloc)
        return NULL;
    if (sites.on)
        ours.charged = sites_charge_tag;
    joint_tags = tags;
    stand_before_hooks();
    return &ours;
}
