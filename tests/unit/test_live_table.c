/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/agent/live and what it stands on (word_cache), alone in a process: addresses as allocators give them, crowded
 * ones too, entered and taken in a random order while the table grows; against an array that is indexed by the record.
 * The table is included, as what an entry tells of its key has no other witness.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "agent/sampler/live_filter.c"
#include "agent/sampler/live_table.c"
#include "base/sigsafe/word_cache.h"

#define RECORDS 400000u

struct process process;

bool ledger_may_call(struct ledger *l)
{
    (void)l;
    return true;
}

void *ledger_private(struct ledger *l, uint64_t bytes)
{
    (void)l;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void ledger_give_back(struct ledger *l, void *at, uint64_t bytes)
{
    (void)l;
    munmap(at, bytes);
}

void ledger_empty_private(struct ledger *l, void *at, uint64_t bytes)
{
    (void)l;
    madvise(at, bytes, MADV_DONTNEED);
}

static uint64_t random_state = 88172645463325252u;

static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* The n-th object of a heap of each kind: packed by 8 as some allocators do, by 16, by 48, by 4 KiB, and anywhere. */
static uintptr_t object(uint32_t n)
{
    uint64_t at = n / 5;
    switch (n % 5) {
    case 0:
        return 0x555500000000 + at * 8;
    case 1:
        return 0x7f1200000010 + at * 16;
    case 2:
        return 0x7f5600000000 + at * 48;
    case 3:
        return 0x10000000000 + at * 4096;
    default:
        return 0x200000000000 + (at * 0x9e3779b97f4a7c15u >> 20 & ~7ull);
    }
}

static void enter(uint32_t record)
{
    if (!live_table_insert_new(object(record), record))
        assert_true(live_table_insert(object(record), record));
}

static void is_taken(uint32_t record)
{
    uint32_t found = LIVE_TABLE_NONE;
    assert_int_equal(live_table_take(object(record), &found), LIVE_TABLE_TAKEN);
    assert_int_equal(found, record);
    assert_int_equal(process_sample(record)->address, 0);
    assert_int_equal(live_table_take(object(record), &found), LIVE_TABLE_UNKNOWN);
}

/* Whether each entry of each table tells the key that its record has, or says that it cannot; returns how many tell
 * it. */
static uint64_t tell_keys(uint64_t *silent)
{
    uint64_t told = 0;
    for (uint32_t i = oldest; i <= newest; i++)
        for (uint64_t b = 0; b < 1ull << tables[i].log2; b++)
            for (unsigned n = 0; n < BUCKET_ENTRIES; n++) {
                uint64_t entry = bucket_at(&tables[i], b)[n], key, real;
                if (!entry || entry == SEALED || !is_current(entry, &real))
                    continue;
                bool at_home = bucket_of(real, tables[i].log2) == b;
                bool tells = key_at_home(&tables[i], b, entry, &key);
                assert_true(!tells || key == real);
                assert_true(tells == (at_home && tables[i].log2 >= KEYS_LOG2));
                told += tells;
                *silent += !tells;
            }
    return told;
}

static void keys(void **state)
{
    (void)state;
    uint64_t silent = 0, told = 0;
    uint32_t grown = newest;
    process.ledger.regions[LEDGER_SAMPLES] = calloc(RECORDS, sizeof(struct ledger_sample));
    for (uint32_t i = 0; i < RECORDS; i++) {
        enter(i);
        if (newest != grown || i == RECORDS / 2) {
            grown = newest;
            told += tell_keys(&silent);
        }
    }
    assert_true(newest >= 6);
    assert_true(told > RECORDS);
    assert_true(silent > 1000);
    for (uint32_t i = 0; i < RECORDS; i++)
        is_taken(i);
}

static void turnover(void **state)
{
    (void)state;
    static bool lives[RECORDS];
    uint64_t taken = 0;
    for (uint32_t i = 0; i < 3 * RECORDS; i++) {
        uint32_t record = (uint32_t)(draw() % RECORDS);
        if (lives[record]) {
            is_taken(record);
            taken++;
        } else {
            enter(record);
        }
        lives[record] = !lives[record];
    }
    for (uint32_t i = 0; i < RECORDS; i++)
        if (lives[i])
            is_taken(i);
    assert_true(taken > RECORDS / 2);
    free(process.ledger.regions[LEDGER_SAMPLES]);
}

/* What races leave: an entry twice, as it is when its table has moved on meanwhile. Then the record's next sample
 * has its address. */
static void leftovers(void **state)
{
    (void)state;
    uint32_t found, beside = 5, record = 10; /* objects of one stretch: the filter does not tell them apart */
    process.ledger.regions[LEDGER_SAMPLES] = calloc(RECORDS, sizeof(struct ledger_sample));
    for (unsigned twice = 0; twice < 2; twice++)
        assert_true(live_table_insert(object(record), record));
    enter(beside);
    assert_int_equal(live_table_take(object(record), &found), LIVE_TABLE_TAKEN);
    assert_false(live_table_insert_new(object(record), record));
    assert_int_equal(live_table_take(object(record), &found), LIVE_TABLE_UNKNOWN);
    assert_true(live_table_insert(object(record), record));
    is_taken(record);
    is_taken(beside);
    free(process.ledger.regions[LEDGER_SAMPLES]);
}

static void words(void **state)
{
    (void)state;
    static struct word_cache cache;
    uint64_t found = 0;
    for (uint64_t key = 1; key <= 8000; key++) {
        assert_int_equal(word_cache_find(&cache, key * 0x9e3779b97f4a7c15u), 0);
        uint64_t mask = word_cache_mask(&cache);
        word_cache_keep(&cache, key * 0x9e3779b97f4a7c15u, key);
        bool has_grown = word_cache_mask(&cache) != mask; /* then it lies where it is not looked for */
        assert_true(has_grown || word_cache_find(&cache, key * 0x9e3779b97f4a7c15u) == key);
    }
    for (uint64_t key = 1; key <= 8000; key++) {
        uint64_t word = word_cache_find(&cache, key * 0x9e3779b97f4a7c15u);
        assert_true(!word || word == key);
        found += word != 0;
    }
    assert_int_equal(word_cache_mask(&cache), WORD_CACHE_MASK_LAST);
    assert_true(found > 6000);
    word_cache_keep(&cache, 77, 5);
    word_cache_keep(&cache, 77, 6);
    assert_int_equal(word_cache_find(&cache, 77), 6);
    struct word_cache_entry *torn = word_cache_way(&cache, word_cache_place(77, word_cache_mask(&cache)), 0);
    for (unsigned n = 0; torn->word != 6 && n < WORD_CACHE_WAYS; n++)
        torn = word_cache_way(&cache, word_cache_place(77, word_cache_mask(&cache)), n);
    torn->word = 9; /* half of a write of another key's */
    assert_int_equal(word_cache_find(&cache, 77), 0);
    word_cache_forget(&cache);
    for (uint64_t key = 1; key <= 8000; key++)
        assert_int_equal(word_cache_find(&cache, key * 0x9e3779b97f4a7c15u), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"an entry in its home bucket tells its key, one elsewhere says that it does not", keys, NULL, NULL,
         NULL},
        {"what was entered is taken once, whatever comes and goes", turnover, NULL, NULL, NULL},
        {"a leftover is not the sample that has its address and record anew", leftovers, NULL, NULL, NULL},
        {"a cached word is its key's or none, and none of a torn entry", words, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
