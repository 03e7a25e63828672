/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_RECORD_POOL_H
#define AGENT_RECORD_POOL_H

/*
 * The records of samples that are not in use: a stack for each shard, its head tagged so that a head seen before is not
 * mistaken for itself. A record goes back to the shard that its latest sample was made in, whoever frees that: so
 * threads seldom write to one cache line, and none runs out of records while another hoards them.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Needs: process_open_ledger() said true.
 */

#include <stdint.h>

#include "agent/process.h"

#define RECORD_POOL_TOGETHER 16u

static inline uint32_t record_pool_pop(struct ledger_shard *shard)
{
    for (;;) {
        uint64_t head = load_acquire(&shard->vacant);
        uint32_t first = (uint32_t)head;
        if (unlikely(first == LEDGER_NONE))
            return LEDGER_NONE;
        uint64_t second = load_relaxed(&process_sample(first)->next);
        if (likely(atomic_swap_if64(&shard->vacant, head, ((head >> 32) + 1) << 32 | second)))
            return first;
    }
}

static inline void record_pool_push_to(struct ledger_shard *shard, uint32_t record)
{
    struct ledger_sample *s = process_sample(record);
    uint64_t head;
    do {
        head = load_acquire(&shard->vacant);
        store_relaxed(&s->next, (uint32_t)head);
    } while (unlikely(!atomic_swap_if64(&shard->vacant, head, ((head >> 32) + 1) << 32 | record)));
}

/** The record's sample is gone. */
static inline void record_pool_push(uint32_t record)
{
    uint64_t home = load_relaxed(&process_sample(record)->serial) >> LEDGER_SERIAL_SHIFT;
    record_pool_push_to(&process.ledger.header->shards[home % LEDGER_SHARDS], record);
}

/* Some records at once, so that two threads' records seldom lie on one cache line. The first one is taken. */
static inline uint32_t record_pool_extend_cold(struct ledger_shard *shard)
{
    uint32_t together = atomic_alone() ? 1 : RECORD_POOL_TOGETHER;
    uint32_t first = ledger_append(&process.ledger, LEDGER_SAMPLES, together);
    if (first == LEDGER_NONE)
        return together == 1 ? first : ledger_append(&process.ledger, LEDGER_SAMPLES, 1);
    for (uint32_t i = 1; i < together; i++)
        record_pool_push_to(shard, first + together - i);
    return first;
}

/* Where there is no room for more: those of threads that have gone. */
static inline uint32_t record_pool_steal_cold(void)
{
    uint32_t record = LEDGER_NONE;
    for (unsigned i = 0; record == LEDGER_NONE && i < LEDGER_SHARDS; i++)
        record = record_pool_pop(&process.ledger.header->shards[i]);
    return record;
}

/** A vacant record for a sample of this shard, from the end of the table if need be; LEDGER_NONE: no room. */
static inline uint32_t record_pool_take(struct ledger_shard *shard)
{
    uint32_t record = record_pool_pop(shard);
    if (unlikely(record == LEDGER_NONE))
        record = record_pool_extend_cold(shard);
    return likely(record != LEDGER_NONE) ? record : record_pool_steal_cold();
}

#endif
