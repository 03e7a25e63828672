/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_MEMLEAK_KERNEL_SUMS_H
#define SYS_MEMLEAK_KERNEL_SUMS_H

/*
 * What the kernel mode of `allium sys memleak` makes of live objects: for each row their estimated bytes and number,
 * their ages, and whether the row grows; and the frees that had no event.
 *
 * Runs in: the tool. Threads: one. Owns: its sums, until memleak_sums_free().
 */

#include "bpf/memleak_kernel.h"
#include "model/profile/growth.h"
#include "sys/session.h"

/** Of the live objects of one row. Zeros are the sum of none. */
struct memleak_sum {
    struct estimate bytes, objects;
    uint64_t oldest_ns, newest_ns; /* CLOCK_MONOTONIC: when the oldest and the newest one were allocated */
    double ages[SYS_SLOTS];        /* objects by the power of two of their age in ns */
    /* The cache that most of the bytes are of, if one has more than half: found by their majority vote. */
    uint32_t cache;
    bool other_caches;
    double cache_lead_bytes;
    uint32_t series_stack; /* + 1; 0: none yet */
};

struct memleak_sums;

/** `period_bytes`: of sampling; 1: every object is known. Objects younger than `older_than_ns` do not count. */
struct memleak_sums *memleak_sums_new(uint64_t period_bytes, uint64_t older_than_ns);
void memleak_sums_free(struct memleak_sums *m);

/** Returns whether the object is old enough to count. */
bool memleak_sums_count(const struct memleak_sums *m, const struct sys_session *s,
                        const struct memleak_kernel_live *object);
/** Adds a live object, known by its address, to the sum of its row, which has this key. */
void memleak_sums_add(struct memleak_sums *m, const struct sys_session *s, const void *key,
                      struct memleak_sum *sum, uint64_t address, const struct memleak_kernel_live *object);
/** Ends a report: the objects that were added since the last one are those that are live now. */
void memleak_sums_end(struct memleak_sums *m, const struct sys_session *s);
/** Returns whether the row grows, by all reports until now. */
struct growth memleak_sums_growth(const struct memleak_sums *m, const struct memleak_sum *sum);

/** Adds frees without an event to the row that has this key. */
void memleak_sums_add_unseen(struct memleak_sums *m, const struct sys_session *s, const void *key,
                             uint64_t frees);
/** Returns how many such frees the row has had since the start. */
uint64_t memleak_sums_unseen(const struct memleak_sums *m, const struct sys_session *s, const void *key);

#endif
