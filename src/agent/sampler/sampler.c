/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sampler/sampler.h"

#include "agent/clock.h"
#include "agent/hooks/next.h"
#include "agent/ledger_writer.h"
#include "agent/process.h"
#include "agent/reentry.h"
#include "agent/sampler/cell_sums.h"
#include "agent/sampler/live_filter.h"
#include "agent/sampler/live_table.h"
#include "agent/sampler/probes.h"
#include "agent/sampler/record_pool.h"
#include "agent/sites_link.h"
#include "base/sigsafe/draw.h"

#define FREE_STACK_TICKS  (1u << 22) /* least time between two frees with a stack: some 600 a second (TSC) */
#define COST_SAMPLE_EVERY 64u
#define COST_TICKS_MOST   (1u << 17) /* some 50 microseconds (TSC); a longer operation was interrupted */

static uint64_t next_free_stack;

/* Splits a gap into `left` and `rest`: so the thread reads the control page once in LEDGER_CONTROL_BYTES or sooner. */
static void set_gap(struct thread *t, uint64_t gap)
{
    t->left = gap < LEDGER_CONTROL_BYTES ? gap : LEDGER_CONTROL_BYTES;
    t->rest = gap - t->left;
}

bool sample_is_due(struct thread *t, size_t size)
{
    uint8_t outside = ledger_enter(t);
    process_apply_control();
    ledger_exit(t, outside);
    uint64_t in_force = load_acquire(&agent_state.in_force), period = process_period(in_force);
    uint8_t index = process_period_index(in_force);
    if (unlikely(in_force & LEDGER_CONTROL_OFF)) {
        t->left = LEDGER_CONTROL_BYTES;
        t->rest = 0;
        t->period = UINT8_MAX; /* a gap is drawn when sampling is on again */
        return false;
    }
    if (period == 1) {
        t->left = t->rest = 0;
        t->period = index;
        return true;
    }
    uint64_t gap = t->left + t->rest;
    if (unlikely(t->period != index || !gap)) {
        /* Gaps are memoryless: a gap that is drawn now is as good as the rest of the old one. */
        gap = draw_gap(draw_next(&t->random), period);
        t->period = index;
    }
    if (size < gap) {
        set_gap(t, gap - size);
        return false;
    }
    set_gap(t, draw_gap(draw_next(&t->random), period));
    return true;
}

static __attribute__((noinline)) struct draw_weight weigh_cold(struct thread *t, uint64_t size,
                                                               uint8_t period_index, uint64_t period)
{
    struct draw_weight weight = draw_weigh(size ? size : 1, period);
    if (t->reentry_depth <= 1) { /* else a signal handler, which may have interrupted this code */
        t->weight = weight;
        t->weighed_period = period_index;
        t->weighed_size = size;
    }
    return weight;
}

static inline struct draw_weight weigh(struct thread *t, uint64_t size, uint8_t period_index)
{
    if (likely(t->weighed_size == size && size && t->weighed_period == period_index))
        return t->weight;
    uint64_t period =
        ledger_at(&process.ledger, LEDGER_PERIODS, struct ledger_period, period_index)->period_bytes;
    if (period == 1)
        return (struct draw_weight){.count_q = 1u << DRAW_Q, .bytes_q = size << DRAW_Q};
    return weigh_cold(t, size, period_index, period);
}

/*
 * Returns the weighted bytes of a sample as an integer, the same at each call. The low 8 bits of the serial, spread by
 * the golden ratio, decide whether the fraction is rounded up or down: so sums of many samples are right on average.
 */
static inline uint64_t whole_bytes(struct draw_weight w, uint64_t serial)
{
    return (w.bytes_q + (uint8_t)((uint8_t)serial * 159u)) >> DRAW_Q;
}

/* True if no other thread writes to the counters of the thread's shard, except to `vacant`. */
static inline bool shard_is_mine(const struct thread *t)
{
    return atomic_alone() || t->shard < LEDGER_SHARDS_OWNED;
}

static inline void op_begin(struct ledger_shard *shard, bool mine)
{
    atomic_add64_known(mine, &shard->begun, 1);
}

/*
 * Adds the time of an operation to `cold_ticks`. op_end() times the first COST_SAMPLE_EVERY operations, whose caches
 * are cold, and then one in COST_SAMPLE_EVERY, whose time is added COST_SAMPLE_EVERY times (once if it is very long).
 */
static __attribute__((noinline)) void op_end_timed_cold(struct ledger_shard *shard, uint64_t n,
                                                        uint64_t began)
{
    uint64_t now = clock_ticks(), ticks = now - began;
    atomic_add64(&shard->cold_ticks,
                 ticks * (n < COST_SAMPLE_EVERY || ticks > COST_TICKS_MOST ? 1 : COST_SAMPLE_EVERY));
    /* Not at the first sample, because a process with a single sample needs no room for 20,000. */
    if (unlikely(!load_relaxed(&agent_state.has_room)) && load_relaxed(&shard->serials) > 1)
        writer_take_first_room_cold(load_relaxed(&shard->allocated_bytes_q) >> LEDGER_Q, now);
}

static inline void op_end(struct ledger_shard *shard, bool mine, uint64_t began)
{
    uint64_t n = load_relaxed(&shard->done);
    if (unlikely(n < COST_SAMPLE_EVERY || n % COST_SAMPLE_EVERY == 0))
        op_end_timed_cold(shard, n, began);
    atomic_add64_known(mine, &shard->done, 1);
}

/* If the live table has a sample at an address that was just allocated, its free was not seen: counts the free now. */
static __attribute__((noinline)) void drop_stale_cold(struct thread *t, struct ledger_shard *shard, bool mine,
                                                      uintptr_t address, uint64_t ticks)
{
    uint32_t record;
    if (likely(!live_filter_may_hold((const void *)address)))
        return;
    enum live_table_taken taken = live_table_take(address, &record);
    if (taken == LIVE_TABLE_INHERITED || taken == LIVE_TABLE_UNKNOWN)
        return;
    struct ledger_sample *s = process_sample(record);
    const struct ledger_cell *c = ledger_at(&process.ledger, LEDGER_CELLS, struct ledger_cell, s->cell);
    cell_sums_freed(shard, mine, s->cell, s->size_bytes, weigh(t, s->size_bytes, c->period),
                    ticks - s->born_ticks, false);
    record_pool_push(record);
    process_count_loss(LEDGER_LOST_FREES_UNSEEN);
}

/* Writes the record of a sample, and adds the sample's address to the live table. False: no room in one of them. */
static bool follow(struct thread *t, struct ledger_shard *shard, bool mine, uintptr_t address, size_t size,
                   uint32_t cell, uint64_t serial, uint64_t ticks)
{
    uint32_t record = record_pool_take(shard);
    if (record == LEDGER_NONE)
        return false;
    struct ledger_sample *s = process_sample(record);
    bool known = next.malloc_usable_size;
    size_t usable = known ? next.malloc_usable_size((void *)address) : size;
    size_t slack = usable > size ? usable - size : 0;
    store_release(&s->check, 0);
    s->size_bytes = size;
    s->born_ticks = ticks;
    s->cell = cell;
    s->slack_bytes = !known                         ? LEDGER_SLACK_UNKNOWN
                     : slack < LEDGER_SLACK_UNKNOWN ? (uint32_t)slack
                                                    : LEDGER_SLACK_UNKNOWN - 1;
    store_release(&s->serial, serial);
    store_release(&s->check, ledger_check(serial));
    if (likely(live_table_insert_new(address, record)))
        return true;
    drop_stale_cold(t, shard, mine, address, ticks);
    if (live_table_insert(address, record))
        return true;
    record_pool_push(record);
    return false;
}

/* Adds the thread's record to the ledger when the thread allocates or frees a sample for the first time. */
static inline void enter_thread(struct thread *t, uint64_t ticks)
{
    if (likely(t->has_row))
        return;
    t->row = writer_add_thread(ticks);
    t->has_row = 1;
}

static struct sample_allocated count_allocated(struct thread *t, const struct walk_start *start, void *p,
                                               size_t size)
{
    struct sample_allocated allocated = {0};
    if (!process_open_ledger()) {
        process_count_loss(LEDGER_LOST_SAMPLES);
        return allocated;
    }
    struct ledger_header *h = process.ledger.header;
    struct ledger_shard *shard = &h->shards[t->shard];
    bool mine = shard_is_mine(t);
    uint64_t ticks = clock_ticks();
    op_begin(shard, mine);
    enter_thread(t, ticks);
    if (unlikely(!t->row))
        process_count_loss(LEDGER_LOST_THREADS);
    uint32_t cell = writer_cell(t, start, ledger_size_class(size));
    if (unlikely(cell == LEDGER_NONE)) {
        process_count_loss(LEDGER_LOST_SAMPLES);
        drop_stale_cold(t, shard, mine, (uintptr_t)p, ticks);
    } else {
        struct draw_weight w = weigh(t, size, t->period);
        uint64_t serial = ((uint64_t)(shard - h->shards) << LEDGER_SERIAL_SHIFT) +
                          atomic_fetch_add64_known(mine, &shard->serials, 1) + 1;
        cell_sums_allocated(shard, mine, cell, size, w, ticks);
        if (unlikely(!follow(t, shard, mine, (uintptr_t)p, size, cell, serial, ticks)))
            cell_sums_not_followed(shard, mine, cell, size, w);
        t->last_serial = serial;
        t->left_mark = t->left;
        allocated = (struct sample_allocated){serial, whole_bytes(w, serial)};
    }
    op_end(shard, mine, ticks);
    return allocated;
}

struct sample_allocated sample_allocated(struct thread *t, const struct walk_start *start, void *p,
                                         size_t size)
{
    struct sample_allocated allocated = {0};
    uint8_t outside = ledger_enter(t);
    /* UINT8_MAX: during the request a signal handler forked (the child has no gap yet) or saw sampling switched off. */
    if (likely(process_is_known(t) && t->period != UINT8_MAX))
        allocated = count_allocated(t, start, p, size);
    ledger_exit(t, outside);
    if (unlikely(sites_on))
        sites->expect_more(p, size);
    return allocated;
}

/* Returns whether to record the stack of this free. Few are: walks would double the cost of short-lived samples. */
static bool stack_is_due(uint64_t ticks)
{
    uint64_t due = load_relaxed(&next_free_stack);
    return ticks >= due && atomic_swap_if64(&next_free_stack, due, ticks + FREE_STACK_TICKS);
}

/* Adds a free to the ring, field by field: copying a structure right after its fields were written stalls the CPU. */
static void remember_free(struct thread *t, struct ledger_shard *shard, bool mine,
                          const struct walk_start *start, const struct ledger_sample *s, uintptr_t address,
                          uint64_t ticks, bool reallocated)
{
    bool whole = (load_relaxed(&agent_state.in_force) & LEDGER_CONTROL_FREE_STACKS) || stack_is_due(ticks);
    uint32_t stack = whole ? writer_stack(t, start) : LEDGER_NONE;
    uint32_t caller = whole ? LEDGER_NONE : writer_caller_of_each(start->pc);
    uint64_t number;
    struct ledger_free *f = writer_next_free(shard, mine, &number);
    if (unlikely(!f))
        return;
    f->serial = s->serial;
    f->address = address;
    f->size_bytes = s->size_bytes;
    f->born_ticks = s->born_ticks;
    f->freed_ticks = ticks;
    f->cell = s->cell;
    f->stack = stack;
    f->caller = caller;
    f->thread = t->row;
    f->reallocated = reallocated;
    store_release(&f->number, number + 1);
}

static inline __attribute__((always_inline)) void count_freed(struct thread *t,
                                                              const struct walk_start *start, uint32_t record,
                                                              uintptr_t address,
                                                              struct sample_released *moved)
{
    struct ledger_shard *shard = &process.ledger.header->shards[t->shard];
    bool mine = shard_is_mine(t);
    struct ledger_sample *s = process_sample(record);
    uint64_t ticks = clock_ticks();
    op_begin(shard, mine);
    const struct ledger_cell *c = ledger_at(&process.ledger, LEDGER_CELLS, struct ledger_cell, s->cell);
    enter_thread(t, ticks);
    bool temporary = s->serial == t->last_serial && t->left == t->left_mark;
    struct draw_weight w = weigh(t, s->size_bytes, c->period);
    cell_sums_freed(shard, mine, s->cell, s->size_bytes, w, ticks - s->born_ticks, temporary);
    remember_free(t, shard, mine, start, s, address, ticks, moved != NULL);
    if (unlikely(moved != NULL)) {
        *moved = (struct sample_released){s->serial, s->size_bytes, whole_bytes(w, s->serial)};
    } else {
        probe_free(address, s->size_bytes, whole_bytes(w, s->serial), s->serial);
        probe_otel_free(address);
    }
    record_pool_push(record);
    op_end(shard, mine, ticks);
}

/* Removes the sample at `p` from the live table and returns its record; LIVE_TABLE_NONE: no sample of this process. */
static inline uint32_t take_record(void *p)
{
    uint32_t record = LIVE_TABLE_NONE;
    enum live_table_taken found = live_table_take((uintptr_t)p, &record);
    if (found == LIVE_TABLE_INHERITED)
        process_count_loss(LEDGER_INHERITED_FREES);
    return found == LIVE_TABLE_TAKEN ? record : LIVE_TABLE_NONE;
}

struct taken sample_take(struct thread *t, void *p)
{
    struct taken taken = {.record = LIVE_TABLE_NONE, .address = (uintptr_t)p};
    uint8_t outside;
    if (unlikely(!ledger_enter_own(t, &outside)))
        return taken;
    taken.generation = t->generation;
    taken.record = take_record(p);
    ledger_exit(t, outside);
    return taken;
}

/* Does the record belong to this process? Not if a signal handler has forked since the record was removed. */
static bool is_ours(struct taken taken)
{
    return taken.record != LIVE_TABLE_NONE && process_is_current() && taken.generation == process.generation;
}

void sample_freed(struct thread *t, const struct walk_start *start, void *p, struct taken *moved)
{
    uint8_t outside;
    PROBE_FROM_HERE();
    if (unlikely(!ledger_enter_own(t, &outside)))
        return;
    uint32_t record = moved ? (is_ours(*moved) ? moved->record : LIVE_TABLE_NONE) : take_record(p);
    if (likely(record != LIVE_TABLE_NONE))
        count_freed(t, start, record, (uintptr_t)p, moved ? &moved->released : NULL);
    ledger_exit(t, outside);
}

static struct sample_released put_back(struct thread *t, struct taken taken)
{
    struct ledger_sample *s = process_sample(taken.record);
    const struct ledger_cell *c = cell_sums_cell(s->cell);
    struct sample_released stayed = {s->serial, s->size_bytes,
                                     whole_bytes(weigh(t, s->size_bytes, c->period), s->serial)};
    if (live_table_insert(taken.address, taken.record))
        return stayed;
    process_count_loss(LEDGER_LOST_LIVE);
    record_pool_push(taken.record);
    stayed.serial = 0;
    return stayed;
}

struct sample_released sample_put_back(struct thread *t, struct taken taken)
{
    struct sample_released stayed = {0};
    uint8_t outside = ledger_enter(t);
    if (is_ours(taken))
        stayed = put_back(t, taken);
    ledger_exit(t, outside);
    return stayed;
}
