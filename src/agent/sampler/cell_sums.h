/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_CELL_SUMS_H
#define AGENT_CELL_SUMS_H

/*
 * One sample more, or one less, in a cell and in the totals, with the peak kept up to date. Inline: every sample passes
 * here twice.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included.
 * Needs: process_open_ledger() said true.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agent/process.h"
#include "base/sigsafe/draw.h"
#include "wire/ledger.h"

#define CELL_SUMS_LOT_PERIODS 4u
#define CELL_SUMS_LOT_LEAST   (64u << 10) /* bytes */

static inline struct ledger_cell *cell_sums_cell(uint32_t cell)
{
    return ledger_at(&process.ledger, LEDGER_CELLS, struct ledger_cell, cell);
}

static inline void cell_sums_add(bool alone, struct ledger_sums *s, uint64_t size, struct draw_weight w)
{
    atomic_add64_known(alone, &s->samples, 1);
    atomic_add64_known(alone, &s->seen_bytes, size);
    atomic_add64_known(alone, &s->bytes_q, w.bytes_q);
    atomic_add64_known(alone, &s->count_q, w.count_q);
}

/* Before a cell changes: if the peak was reached since it last did, what it holds now is what it held then. */
static inline void cell_sums_update_peak(struct ledger_cell *c)
{
    uint64_t epoch = load_acquire(&process.ledger.header->peak_epoch);
    if (likely(c->peak_epoch == epoch))
        return;
    const struct ledger_sums *a = &c->allocated, *f = &c->freed;
    c->at_peak = (struct ledger_sums){a->samples - f->samples, a->seen_bytes - f->seen_bytes,
                                      a->bytes_q - f->bytes_q, a->count_q - f->count_q};
    store_release(&c->peak_epoch, epoch);
}

/*
 * Live bytes go to the header at once while there is one thread; then in lots of a few periods, which is less than what
 * an estimate can tell. The peak is seen where they arrive.
 */
static inline void cell_sums_change_live(struct ledger_shard *shard, bool mine, uint64_t delta_q,
                                         uint64_t ticks)
{
    struct ledger_header *h = process.ledger.header;
    if (!atomic_alone()) {
        uint64_t pending = atomic_fetch_add64_known(mine, &shard->pending_bytes_q, delta_q) + delta_q;
        uint64_t lot = process_period(load_relaxed(&agent_state.in_force)) * CELL_SUMS_LOT_PERIODS;
        lot = lot > CELL_SUMS_LOT_LEAST ? lot : CELL_SUMS_LOT_LEAST;
        int64_t level = (int64_t)pending / (1 << LEDGER_Q);
        if (level < (int64_t)lot && level > -(int64_t)lot)
            return;
        if (!atomic_swap_if64(&shard->pending_bytes_q, pending, 0))
            return; /* whoever changed it meanwhile hands it on */
        delta_q = pending;
    }
    uint64_t live = atomic_fetch_add64(&h->live_bytes_q, delta_q) + delta_q;
    uint64_t peak = load_relaxed(&h->peak_bytes_q);
    if (unlikely((int64_t)live > (int64_t)peak) && atomic_swap_if64(&h->peak_bytes_q, peak, live)) {
        atomic_add64(&h->peak_epoch, 1);
        store_relaxed(&h->peak_ticks, ticks);
    }
}

/** `shard` is the current thread's; `mine`: nobody else writes its counters. */
static inline void cell_sums_allocated(struct ledger_shard *shard, bool mine, uint32_t cell, uint64_t size,
                                       struct draw_weight w, uint64_t ticks)
{
    struct ledger_cell *c = cell_sums_cell(cell);
    bool alone = atomic_alone();
    cell_sums_update_peak(c);
    /* A thread's cells are its own, but for those of thread 0, "other": nobody else adds here. */
    cell_sums_add(alone || c->thread, &c->allocated, size, w);
    atomic_add64_known(mine, &shard->allocated_bytes_q, w.bytes_q);
    cell_sums_change_live(shard, mine, w.bytes_q, ticks);
}

static inline void cell_sums_freed(struct ledger_shard *shard, bool mine, uint32_t cell, uint64_t size,
                                   struct draw_weight w, uint64_t age_ticks, bool temporary)
{
    struct ledger_cell *c = cell_sums_cell(cell);
    cell_sums_update_peak(c);
    cell_sums_add(atomic_alone(), &c->freed, size, w);
    cell_sums_change_live(shard, mine, -w.bytes_q, 0);
    atomic_add32(&c->lifetimes[ledger_lifetime_class(age_ticks)], 1);
    if (temporary) {
        atomic_add64(&c->temporary_samples, 1);
        atomic_add64(&c->temporary_bytes_q, w.bytes_q);
    }
}

/** What was allocated but cannot be followed: it goes to `freed` too, so that what is live is what is followed. */
static inline void cell_sums_not_followed(struct ledger_shard *shard, bool mine, uint32_t cell, uint64_t size,
                                          struct draw_weight w)
{
    cell_sums_add(atomic_alone(), &cell_sums_cell(cell)->freed, size, w);
    cell_sums_change_live(shard, mine, -w.bytes_q, 0);
    process_count_loss(LEDGER_LOST_LIVE);
}

#endif
