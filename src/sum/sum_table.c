/* SPDX-License-Identifier: BSD-2-Clause */
#include "sum/sum_table.h"

#include "base/sigsafe/atomic.h"

#define CPU_OFFSET 0 /* of `cpu_id_start` in struct rseq: always a number of a CPU */
#define STEP_BYTES 16384u

uint64_t sum_table_first_bytes(uint32_t cpus)
{
    return sum_keys_at(cpus);
}

/* Backs a table from its beginning up to `end`. Threads that come here together make the same memory ready. */
static bool reach(const struct sum_table *t, char *table, uint64_t *ready_bytes, uint64_t end, uint64_t most)
{
    uint64_t ready = __atomic_load_n(ready_bytes, __ATOMIC_ACQUIRE);
    if (likely(end <= ready))
        return true;
    end = end + STEP_BYTES < most ? sum_page_up(end + STEP_BYTES / 2) : most;
    if (!t->reach(table + ready, end - ready))
        return false;
    while (ready < end &&
           !__atomic_compare_exchange_n(ready_bytes, &ready, end, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    return true;
}

static bool reach_keys(const struct sum_table *t, uint32_t rows)
{
    return reach(t, (char *)t->keys, &t->header->keys_ready, rows * sizeof(struct sum_key),
                 SUM_ROWS * sizeof(struct sum_key));
}

static bool reach_cells(const struct sum_table *t, uint32_t part, uint32_t rows)
{
    const uint64_t each = sum_part_bytes(t->cell_bytes);
    return reach(t, t->cells + part * each, &t->parts[part].ready_bytes, (uint64_t)rows * t->cell_bytes,
                 each);
}

bool sum_table_begin(struct sum_table *t, void *file, uint32_t cpus, bool values, uint64_t image_id)
{
    struct sum_header *h = file;
    t->header = h;
    t->parts = (struct sum_part *)(h + 1);
    t->index = (uint32_t *)((char *)file + sum_index_at(cpus));
    t->keys = (struct sum_key *)((char *)file + sum_keys_at(cpus));
    t->cells = (char *)file + sum_cells_at(cpus);
    t->cpus = cpus;
    t->cell_bytes = values ? sizeof(struct sum_cells) : SUM_COUNT_BYTES;
    h->version = SUM_VERSION;
    h->cpus = cpus;
    h->cell_bytes = t->cell_bytes;
    h->image_id = image_id;
    h->rows = 1;
    if (!reach_cells(t, cpus, 1))
        return false;
    store_release(&h->magic, SUM_MAGIC);
    return true;
}

enum sum_type sum_table_type(const struct sum_table *t, enum sum_type type)
{
    uint32_t now = load_relaxed(&t->header->type);
    if (type == SUM_NONE || t->cell_bytes == SUM_COUNT_BYTES)
        return SUM_NONE;
    if (unlikely(now == SUM_NONE) &&
        __atomic_compare_exchange_n(&t->header->type, &now, type, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return type;
    return now == (uint32_t)type ? type : SUM_NONE;
}

void sum_table_take_room(struct sum_table *t)
{
    if (reach_keys(t, SUM_ROWS))
        reach_cells(t, t->cpus, SUM_ROWS);
}

static uint32_t slot_of(const uint64_t *key, uint32_t words)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < words; i++)
        hash = (hash ^ key[i]) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 29);
    return (uint32_t)(hash >> 51) & (SUM_INDEX - 1);
}

static bool is_key(const struct sum_table *t, uint32_t row, const uint64_t *key, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        if (load_relaxed(&t->keys[row].words[i]) != key[i])
            return false;
    return true;
}

uint32_t sum_table_find(const struct sum_table *t, const uint64_t *key, uint32_t words)
{
    uint32_t row;
    for (uint32_t slot = slot_of(key, words); (row = load_acquire(&t->index[slot])) != 0;
         slot = (slot + 1) & (SUM_INDEX - 1))
        if (is_key(t, row, key, words))
            return row;
    return 0;
}

/* Returns a new row, whose key is written; 0: there is none. */
static uint32_t take_row(struct sum_table *t, const uint64_t *key, uint32_t words, uint64_t frame)
{
    uint64_t row = load_relaxed(&t->header->rows);
    do
        if (row >= SUM_ROWS || !reach_keys(t, (uint32_t)row + 1))
            return 0;
    while (!__atomic_compare_exchange_n(&t->header->rows, &row, row + 1, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
    for (uint32_t i = 0; i < words; i++)
        t->keys[row].words[i] = key[i];
    t->keys[row].frame = frame;
    return (uint32_t)row;
}

/*
 * Returns the row at the slot. If the slot is empty, it gets a new row with that key, *own; 0: there is no room. A slot
 * that has a row keeps it. So two threads that add one key come to the same empty slot; the slower one finds the key
 * there, and its own row stays unused.
 */
static uint32_t row_at(struct sum_table *t, uint32_t slot, uint32_t *own, const uint64_t *key, uint32_t words,
                       uint64_t frame)
{
    uint32_t row = load_acquire(&t->index[slot]);
    if (row)
        return row;
    *own = *own ? *own : take_row(t, key, words, frame);
    if (!*own ||
        __atomic_compare_exchange_n(&t->index[slot], &row, *own, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return *own;
    return row;
}

uint32_t sum_table_insert(struct sum_table *t, const uint64_t *key, uint32_t words, uint64_t frame)
{
    uint32_t slot = slot_of(key, words), own = 0;
    for (;; slot = (slot + 1) & (SUM_INDEX - 1)) {
        const uint32_t row = row_at(t, slot, &own, key, words, frame);
        if (row == own || is_key(t, row, key, words))
            return row;
    }
}

/* A row that is set aside keeps its slot: sum_table_find() finds the row again when the mark is gone. */
uint32_t sum_table_insert_place(struct sum_table *t, const uint64_t *key, uint32_t words, uint32_t place,
                                uint64_t frame, bool aside)
{
    uint64_t marked[SUM_KEY_WORDS];
    uint32_t slot = slot_of(key, words), own = 0;
    __builtin_memcpy(marked, key, words * sizeof(*key));
    marked[place] |= SUM_ASIDE;
    for (;; slot = (slot + 1) & (SUM_INDEX - 1)) {
        const uint32_t row = row_at(t, slot, &own, aside ? marked : key, words, frame);
        if (row == own)
            return row;
        const bool is_aside = is_key(t, row, marked, words);
        if (t->keys[row].frame != frame || (!is_aside && !is_key(t, row, key, words)))
            continue;
        if (is_aside && !aside)
            store_relaxed(&t->keys[row].words[place], key[place]);
        return row;
    }
}

void sum_table_set_aside(struct sum_table *t, uint32_t place, bool (*may_leave)(uint64_t address))
{
    const uint64_t rows = load_acquire(&t->header->rows);
    for (uint64_t row = 1; row < rows && row < SUM_ROWS; row++) {
        uint64_t *word = &t->keys[row].words[place], address = load_relaxed(word);
        if (address && !(address & SUM_ASIDE) && may_leave(address))
            __atomic_compare_exchange_n(word, &address, address | SUM_ASIDE, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
    }
}

/* Returns the part of this CPU, or that of threads without one. */
static uint32_t part_of_cpu(const struct sum_table *t)
{
    uint32_t cpu = t->cpus;
    if (likely(t->area))
        __builtin_memcpy(&cpu, (const char *)__builtin_thread_pointer() + t->area + CPU_OFFSET, sizeof(cpu));
    return cpu < t->cpus ? cpu : t->cpus;
}

void sum_table_count(struct sum_table *t, uint32_t row, enum sum_type type, uint64_t bits)
{
    uint32_t part = part_of_cpu(t);
    if (unlikely(!reach_cells(t, part, row + 1)) && !reach_cells(t, part = t->cpus, row + 1))
        row = 0;
    struct sum_cells *c =
        (struct sum_cells *)(t->cells + part * sum_part_bytes(t->cell_bytes) + (uint64_t)row * t->cell_bytes);
    sum_cells_add(c, type, bits);
}
