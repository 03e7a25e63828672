/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_CELL_SUMS_H
#define AGENT_CELL_SUMS_H

/*
 * When a sample is allocated or freed, adds it to the sums of its cell (its stack, thread, size class and period) and
 * to the totals of the process, and keeps the peak up to date. The functions are inline because they are called twice
 * for each sample.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included.
 * Needs: process_open_ledger() has returned true.
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

/*
 * Called before a cell changes. If the process has reached a new peak since the last change of the cell, the cell has
 * not changed since the peak: its present live sums are stored as those at the peak.
 */
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
 * Adds `delta_q` to the live bytes in the header (with LEDGER_Q fraction bits), and stores a new peak there. While the
 * process has one thread, each call adds at once. With more threads, the changes are added up in the shard. When their
 * sum, positive or negative, reaches both CELL_SUMS_LOT_PERIODS periods and CELL_SUMS_LOT_LEAST bytes, the sum is added
 * to the header: so the peak is not computed at each operation.
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
            return; /* pending_bytes_q has changed meanwhile: that call, or a later one, adds it to the header */
        delta_q = pending;
    }
    uint64_t live = atomic_fetch_add64(&h->live_bytes_q, delta_q) + delta_q;
    uint64_t peak = load_relaxed(&h->peak_bytes_q);
    if (unlikely((int64_t)live > (int64_t)peak) && atomic_swap_if64(&h->peak_bytes_q, peak, live)) {
        atomic_add64(&h->peak_epoch, 1);
        store_relaxed(&h->peak_ticks, ticks);
    }
}

/**
 * Counts a new sample of `size` requested bytes. `shard`: the shard of the current thread; `mine`: no other thread
 * writes to its counters; `cell`: the index of the cell; `w`: the weight of the sample; `ticks`: the present time.
 */
static inline void cell_sums_allocated(struct ledger_shard *shard, bool mine, uint32_t cell, uint64_t size,
                                       struct draw_weight w, uint64_t ticks)
{
    struct ledger_cell *c = cell_sums_cell(cell);
    bool alone = atomic_alone();
    cell_sums_update_peak(c);
    /* Only the thread of a cell adds to the cell's `allocated`. But thread 0, "other", stands for several threads. */
    cell_sums_add(alone || c->thread, &c->allocated, size, w);
    atomic_add64_known(mine, &shard->allocated_bytes_q, w.bytes_q);
    cell_sums_change_live(shard, mine, w.bytes_q, ticks);
}

/**
 * Counts a sample as freed, at the age of `age_ticks`. `temporary`: the thread that allocated the sample frees it
 * before its next allocation. The other arguments are as for cell_sums_allocated().
 */
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

/**
 * Called if a new sample cannot be followed: counts the sample as freed at once, so that the live sums contain only
 * samples in the live table. Counts a loss, too.
 */
static inline void cell_sums_not_followed(struct ledger_shard *shard, bool mine, uint32_t cell, uint64_t size,
                                          struct draw_weight w)
{
    cell_sums_add(atomic_alone(), &cell_sums_cell(cell)->freed, size, w);
    cell_sums_change_live(shard, mine, -w.bytes_q, 0);
    process_count_loss(LEDGER_LOST_LIVE);
}

#endif
