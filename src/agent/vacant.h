/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_VACANT_H
#define AGENT_VACANT_H

/*
 * The records of samples that are not in use: a stack for each shard, its head tagged so that a head seen before is not
 * mistaken for itself.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Needs: process_open_ledger() said true.
 */

#include <stdint.h>

#include "agent/process.h"

static inline uint32_t vacant_pop(struct ledger_shard *shard)
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

static inline void vacant_push(struct ledger_shard *shard, uint32_t record)
{
    struct ledger_sample *s = process_sample(record);
    uint64_t head;
    do {
        head = load_acquire(&shard->vacant);
        store_relaxed(&s->next, (uint32_t)head);
    } while (unlikely(!atomic_swap_if64(&shard->vacant, head, ((head >> 32) + 1) << 32 | record)));
}

/** A vacant record, from the end of the table if need be; LEDGER_NONE: no room. `shard` is looked at first. */
static inline uint32_t vacant_take(struct ledger_shard *shard)
{
    uint32_t record = vacant_pop(shard);
    /* One thread may free what another allocates: its shard is where the vacant ones gather. */
    for (unsigned i = 0; unlikely(record == LEDGER_NONE) && i < LEDGER_SHARDS; i++)
        record = vacant_pop(&process.ledger.header->shards[i]);
    return likely(record != LEDGER_NONE) ? record : ledger_append(&process.ledger, LEDGER_SAMPLES, 1);
}

#endif
