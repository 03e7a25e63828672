/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/ledger_writer.h"

#include <stddef.h>
#include <sys/prctl.h>

#include "agent/process.h"
#include "agent/sampler/live_filter.h"
#include "agent/sampler/live_table.h"
#include "agent/tag_bridge.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"
#include "target/ledger_stacks.h"
#include "unwind/walk_cache.h"
#include "wire/headroom.h"

#define SEALED_ROOM  (256u << 10) /* bytes that writer_take_room() adds to each growing table */
#define SEALED_SLOTS 16384u       /* slots of each hash table that writer_take_room() makes */
#define ROOM_TICKS   (1ull << 28) /* some 100 ms of the time stamp counter */
#define ROOM_BYTES   (8ull << 20)
#define FIRST_SLOTS  8192u /* the same for writer_take_first_room_cold(); half of the slots are used at most */
#define HASH_FACTOR  0x9e3779b97f4a7c15u

static struct word_cache known; /* maps known_key() to the index of a cell + 1 */
static struct word_cache rules; /* unwind rules of the walk */
struct ledger_stacks writer_stacks = LEDGER_STACKS_OF(&process.ledger, &rules, process_count_loss);
static struct intern cells = {.ledger = &process.ledger};
/* The walk caches, by shard. A thread without a shard of its own has no walk caches. */
static struct walk_caches walk_caches[LEDGER_SHARDS_OWNED];

#define AT(table, type, index) ledger_at(&process.ledger, table, type, index)

_Static_assert(WALK_CACHE_MAX == WRITER_DEPTH_MAX,
               "a stack is cut at the same depth with and without a walk cache");

uint32_t writer_add_period(uint64_t period_bytes, uint64_t ticks)
{
    uint32_t at = ledger_append(&process.ledger, LEDGER_PERIODS, 1);
    if (at != LEDGER_NONE)
        *AT(LEDGER_PERIODS, struct ledger_period, at) = (struct ledger_period){period_bytes, ticks};
    return at;
}

uint16_t writer_add_thread(uint64_t ticks)
{
    uint32_t at = ledger_append(&process.ledger, LEDGER_THREADS, 1);
    if (at == LEDGER_NONE)
        return 0;
    struct ledger_thread *row = AT(LEDGER_THREADS, struct ledger_thread, at);
    row->ordinal = at;
    row->first_ticks = ticks;
    if (ledger_may_call(&process.ledger)) {
        sys_call(SYS_prctl, PR_GET_NAME, row->name);
        row->tid = (int32_t)sys_call(SYS_gettid, 0);
    }
    return (uint16_t)at;
}

static __attribute__((noinline)) uint32_t stack_alone_cold(struct stack_bounds *bounds,
                                                           const struct walk_start *start)
{
    uint32_t ids[WRITER_DEPTH_MAX];
    enum walk_end end;
    struct walker w = ledger_stacks_walker(&writer_stacks);
    unsigned depth = walk_stack(&w, bounds, start, ids, WRITER_DEPTH_MAX, &end);
    return ledger_stacks_number(&writer_stacks, ids, depth, ledger_stacks_hash(ids, depth), end);
}

/* Returns the thread's walk caches. NULL: it has none, or code that a signal handler interrupted may be using them. */
static inline struct walk_caches *walk_caches_of(const struct thread *t)
{
    return likely(t->reentry_depth == 1 && t->shard < LEDGER_SHARDS_OWNED) ? &walk_caches[t->shard] : NULL;
}

/* The result of a walk. */
struct walked {
    const uint32_t *ids;
    unsigned depth;
    enum walk_end end;
};

static inline struct walked walk_it(struct walk_cache *cache, struct walk_cache_walk *own,
                                    struct stack_bounds *bounds, const struct walk_start *start)
{
    struct walker w = ledger_stacks_walker(&writer_stacks);
    struct walked k;
    k.ids = walk_along(&w, cache, own, bounds, start, process.generation, &k.depth, &k.end);
    return k;
}

/* Returns the hash of the walked frames from the walk cache; 0: the walk cache does not have these frames. */
static inline uint64_t hash_along(const struct walk_cache *cache, const struct walk_cache_walk *own,
                                  const struct walked *k)
{
    return likely(k->ids != own->id) ? cache->hash[k->ids - cache->id] : 0;
}

static __attribute__((noinline)) uint32_t
stack_along(struct walk_cache *cache, const struct walk_cache_walk *own, const struct walked *k)
{
    bool is_cached = k->ids == cache->id + cache->top;
    if (likely(is_cached && cache->stack != WALK_CACHE_NONE))
        return cache->stack;
    uint64_t hash =
        likely(k->ids != own->id) ? hash_along(cache, own, k) : ledger_stacks_hash(k->ids, k->depth);
    uint32_t stack = ledger_stacks_number(&writer_stacks, k->ids, k->depth, hash, k->end);
    if (is_cached)
        cache->stack = stack;
    return stack;
}

uint32_t writer_stack(struct thread *t, const struct walk_start *start)
{
    struct walk_caches *all = walk_caches_of(t);
    if (unlikely(!all))
        return stack_alone_cold(&t->stack, start);
    struct walk_cache *cache = walk_cache_for(all, start->pc, start->sp);
    struct walked k = walk_it(cache, &all->walk, &t->stack, start);
    return stack_along(cache, &all->walk, &k);
}

uint32_t writer_caller_of_each(uintptr_t pc)
{
    struct walker w = ledger_stacks_walker(&writer_stacks);
    return walk_caller(&w, pc);
}

bool writer_walk_out(struct thread *t, struct walk_start *at)
{
    struct walker w = ledger_stacks_walker(&writer_stacks);
    return walk_out(&w, &t->stack, at);
}

bool writer_walk_out_known(const struct thread *t, struct walk_start *at)
{
    struct walker w = ledger_stacks_walker(&writer_stacks);
    return walk_out_known(&w, &t->stack, at);
}

struct cell_key {
    uint32_t stack;
    uint16_t thread;
    uint8_t size_class, period;
};

static bool same_cell(const void *key, uint32_t number)
{
    const struct cell_key *k = key;
    const struct ledger_cell *c = AT(LEDGER_CELLS, struct ledger_cell, number);
    return c->stack == k->stack && c->thread == k->thread && c->size_class == k->size_class &&
           c->period == k->period;
}

static uint32_t find_cell(struct cell_key key)
{
    uint64_t word;
    __builtin_memcpy(&word, &key, sizeof(word));
    uint32_t hash = (uint32_t)(word * HASH_FACTOR >> 32);
    uint32_t at = intern_find(&cells, hash, same_cell, &key);
    if (likely(at != INTERN_NONE))
        return at;
    at = ledger_append(&process.ledger, LEDGER_CELLS, 1);
    if (at == LEDGER_NONE) {
        if (!key.thread)
            return LEDGER_NONE;
        key.thread = 0;
        return find_cell(key);
    }
    struct ledger_cell *c = AT(LEDGER_CELLS, struct ledger_cell, at);
    c->stack = key.stack;
    c->thread = key.thread;
    c->size_class = key.size_class;
    c->period = key.period;
    intern_add(&cells, hash, at);
    return at;
}

/*
 * Returns the key by which the cache `known` finds the cell of this stack and `key`, or, if `key` is no_cell, the
 * stack. 0: no key, because `hash` is 0 (unknown). The cache saves a search that reads the index of stacks, the stack,
 * its frames, the index of cells and the cell. Keys have 64 bits: the chance that any two of a million cells have the
 * same key is 3 in 100 million.
 */
static inline uint64_t known_key(uint64_t hash, unsigned depth, struct cell_key key)
{
    uint64_t tag =
        (uint64_t)depth << 32 | (uint64_t)key.thread << 16 | (uint64_t)key.size_class << 8 | key.period;
    uint64_t h = (hash ^ tag) * HASH_FACTOR;
    return likely(hash) ? h ^ h >> 32 : 0;
}

static inline uint32_t cell_along(struct walk_cache *cache, const struct walk_cache_walk *own,
                                  const struct walked *k, struct cell_key key)
{
    uint64_t known_as =
        known_key(likely(k->end == WALK_WHOLE) ? hash_along(cache, own, k) : 0, k->depth, key);
    uint64_t cell = likely(known_as) ? word_cache_find(&known, known_as) : 0;
    if (likely(cell))
        return (uint32_t)cell - 1;
    key.stack = stack_along(cache, own, k);
    uint32_t found = likely(key.stack != LEDGER_NONE) ? find_cell(key) : LEDGER_NONE;
    if (known_as && found != LEDGER_NONE)
        word_cache_keep(&known, known_as, (uint64_t)found + 1);
    return found;
}

uint32_t writer_stack_of_each(struct thread *t, const struct walk_start *start)
{
    static const struct cell_key no_cell = {
        .thread = UINT16_MAX, .size_class = UINT8_MAX, .period = UINT8_MAX};
    struct walk_caches *all = walk_caches_of(t);
    if (unlikely(!all))
        return stack_alone_cold(&t->stack, start);
    struct walk_cache *cache = walk_cache_for(all, start->pc, start->sp);
    struct walked k = walk_it(cache, &all->walk, &t->stack, start);
    const bool is_cached = k.ids == cache->id + cache->top;
    if (likely(is_cached) && cache->stack != WALK_CACHE_NONE)
        return cache->stack;
    const uint64_t known_as =
        known_key(likely(k.end == WALK_WHOLE) ? hash_along(cache, &all->walk, &k) : 0, k.depth, no_cell);
    const uint64_t found = likely(known_as) ? word_cache_find(&known, known_as) : 0;
    if (unlikely(!found)) {
        const uint32_t stack = stack_along(cache, &all->walk, &k);
        if (known_as && stack != LEDGER_NONE)
            word_cache_keep(&known, known_as, (uint64_t)stack + 1);
        return stack;
    }
    if (likely(is_cached))
        cache->stack = (uint32_t)found - 1;
    return (uint32_t)found - 1;
}

uint32_t writer_cell(struct thread *t, const struct walk_start *start, uint8_t size_class)
{
    struct walk_caches *all = walk_caches_of(t);
    struct cell_key key = {.thread = t->row, .size_class = size_class, .period = t->period};
    if (unlikely(!all)) {
        key.stack = stack_alone_cold(&t->stack, start);
        return likely(key.stack != LEDGER_NONE) ? find_cell(key) : LEDGER_NONE;
    }
    struct walk_cache *cache = walk_cache_for(all, start->pc, start->sp);
    struct walked k = walk_it(cache, &all->walk, &t->stack, start);
    return cell_along(cache, &all->walk, &k, key);
}

/*
 * Returns the index of the entry for free number `number` of the shard, in a table of `bytes` bytes. The table has a
 * ring for each shard, one behind the other, so that unused shards take no memory. A ring has a power of two entries.
 */
static uint64_t slot_in(uint64_t bytes, uint64_t number, uint64_t shard)
{
    uint64_t each = 1ull << (63 - __builtin_clzll(bytes / (sizeof(struct ledger_free) * LEDGER_SHARDS)));
    return shard * each + (number & (each - 1));
}

struct ledger_free *writer_next_free(struct ledger_shard *shard, bool mine, uint64_t *number)
{
    struct ledger_region *r = &process.ledger.header->regions[LEDGER_FREES];
    uint64_t shard_index = (uint64_t)(shard - process.ledger.header->shards);
    *number = atomic_fetch_add64_known(mine, &shard->next_free, 1);
    uint64_t slot = slot_in(r->limit_bytes, *number, shard_index);
    if (unlikely(!ledger_reach(&process.ledger, LEDGER_FREES, (slot + 1) * sizeof(struct ledger_free)))) {
        uint64_t ready = load_relaxed(&r->ready_bytes);
        if (ready < sizeof(struct ledger_free) * LEDGER_SHARDS)
            return NULL;
        slot = slot_in(ready, *number, shard_index);
    }
    struct ledger_free *f = AT(LEDGER_FREES, struct ledger_free, slot);
    store_release(&f->number, 0);
    return f;
}

void writer_reset(void)
{
    ledger_stacks_reset(&writer_stacks);
    intern_reset(&cells);
    word_cache_forget(&known);
}

/* Takes private memory in advance: for the table of live samples, and for the hash tables that find frames, stacks and
 * cells by their content, which get `slots` slots each. */
static void take_room_of_tables(uint64_t slots)
{
    live_table_take_room();
    ledger_stacks_take_room(&writer_stacks, slots);
    intern_take_room(&cells, slots);
}

void writer_take_first_room_cold(uint64_t bytes, uint64_t ticks)
{
    static const uint32_t ends[LEDGER_TABLES] = {
        [LEDGER_FRAMES] = 32u << 10,
        [LEDGER_STACK_FRAMES] = 256u << 10, /* 2,000 stacks with 32 frames each */
        [LEDGER_STACKS] = 48u << 10,        /* 3,000 stacks: 2,000 of allocations and 1,000 of frees */
        [LEDGER_CELLS] = 480u << 10,
        [LEDGER_SAMPLES] = 980u << 10, /* 20,900 samples */
        [LEDGER_FREES] = 64u << 10,    /* the rings of two shards */
    };
    if (ticks - process.began_ticks < ROOM_TICKS && bytes < ROOM_BYTES)
        return;
    if (__atomic_exchange_n(&agent_state.has_room, 1, __ATOMIC_RELAXED))
        return;
    if (!ledger_take_room(&process.ledger, ends, LIVE_TABLE_ROOM_BYTES + 3 * INTERN_ROOM_BYTES(FIRST_SLOTS)))
        return;
    take_room_of_tables(FIRST_SLOTS);
    /* With tags or call sites the filter is not opened now: their map of objects makes system calls later anyway. */
    if (!agent_api_tags && !process.config.sites && headroom_in_limits(0, LIVE_FILTER_BYTES))
        live_filter_open_all();
}

void writer_take_room(void)
{
    live_filter_open_all();
    take_room_of_tables(SEALED_SLOTS);
    static const enum ledger_table growing[] = {LEDGER_FRAMES, LEDGER_STACK_FRAMES, LEDGER_STACKS,
                                                LEDGER_CELLS,  LEDGER_SAMPLES,      LEDGER_FREES};
    for (unsigned i = 0; i < sizeof(growing) / sizeof(*growing); i++) {
        struct ledger_region *r = &process.ledger.header->regions[growing[i]];
        uint64_t end = r->ready_bytes + SEALED_ROOM;
        ledger_reach(&process.ledger, growing[i], end < r->limit_bytes ? end : r->limit_bytes);
    }
}
