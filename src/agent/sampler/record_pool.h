/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_RECORD_POOL_H
#define AGENT_RECORD_POOL_H

/*
 * The unused records of samples: a linked list for each shard, last in, first out. Its head has a counter, so that
 * compare-and-swap fails if the head has changed and changed back (ABA). When any thread frees a sample, the record
 * goes to the list of the shard that allocated the sample: so threads seldom write to one cache line, and a thread that
 * only frees does not collect the records that other threads need.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Needs: process_open_ledger() has returned true.
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

/** Puts the record of a freed sample back into the list of the shard that allocated the sample. */
static inline void record_pool_push(uint32_t record)
{
    uint64_t home = load_relaxed(&process_sample(record)->serial) >> LEDGER_SERIAL_SHIFT;
    record_pool_push_to(&process.ledger.header->shards[home % LEDGER_SHARDS], record);
}

/*
 * Appends RECORD_POOL_TOGETHER records to the ledger at once, so that the records of two threads seldom share a cache
 * line; but only one if the process has one thread, or if there is no room for more. Returns the first one, and puts
 * the others into the list of the shard. LEDGER_NONE: no room.
 */
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

/* Called if the ledger has no room for more records: takes an unused record of any shard. LEDGER_NONE: none exists. */
static inline uint32_t record_pool_steal_cold(void)
{
    uint32_t record = LEDGER_NONE;
    for (unsigned i = 0; record == LEDGER_NONE && i < LEDGER_SHARDS; i++)
        record = record_pool_pop(&process.ledger.header->shards[i]);
    return record;
}

/**
 * Returns a record for a sample of this shard: an unused one of the shard, a new one at the end of the ledger's table,
 * or an unused one of another shard. LEDGER_NONE: there is none.
 */
static inline uint32_t record_pool_take(struct ledger_shard *shard)
{
    uint32_t record = record_pool_pop(shard);
    if (unlikely(record == LEDGER_NONE))
        record = record_pool_extend_cold(shard);
    return likely(record != LEDGER_NONE) ? record : record_pool_steal_cold();
}

#endif
