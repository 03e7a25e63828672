/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sampler/live_table.h"

#include <stddef.h>
#include <sys/mman.h>

#include "agent/process.h"
#include "agent/sampler/live_filter.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"

#define BUCKET_WORDS    8u /* 7 entries, then the number of entries that belong here but lie in other buckets */
#define BUCKET_ENTRIES  7u
#define PROBE_BUCKETS   8u /* buckets in which an entry may lie, its home bucket included */
#define FIRST_LOG2      9u /* log2 of the first table's buckets; 8 at least, because an entry lacks 8 key bits */
#define ROOM_LOG2       13u /* log2 of the buckets of the table that live_table_take_room() makes */
#define KEYS_LOG2       11u /* from 2^11 buckets on, an entry and the bucket's number tell if this is its home */
#define TABLES_MAX      64u
#define MOVE_PER_INSERT 2u /* buckets of an old table that an insertion moves at most */
#define RECORD_BITS     28u
#define RECORD_MASK     ((1u << RECORD_BITS) - 1)
#define SEALED          (~0ull)       /* the value of a slot of an old table that takes no entry any more */
#define HUGE_FROM       (16ull << 20) /* a table of at least so many bytes asks for huge pages */
/*
 * An address has 44 bits, because it is below 2^47 and a multiple of 8: 35 bits are the page, 5 the stretch in the page
 * (1/32 of it), 4 the place in the stretch. A group of buckets has one bucket for each stretch of a page: a program
 * that uses neighbouring objects then uses the same bucket or its neighbour.
 *
 *     key    stretch ^ mixed page (5) | mixed page (35) | place (4)
 *     entry  the low 36 bits of the key | record + 1 (28); the number of the bucket gives the other 8 bits of the key
 */
#define STRETCH_LOG2 7u
#define GROUP_LOG2   5u /* log2 of the buckets of a group; a table has at least 2^(FIRST_LOG2 - 5) groups */
#define PAGE_BITS    35u
#define PAGE_MASK    ((1ull << PAGE_BITS) - 1)
#define PLACE_BITS   4u

_Static_assert(LIVE_TABLE_ROOM_BYTES == BUCKET_WORDS * 8u << ROOM_LOG2, "a table is its buckets");

struct table {
    uint64_t claim; /* words | log2; set once, by the thread that makes the table */
    uint64_t *words;
    uint32_t log2;      /* of the number of buckets */
    uint64_t moving;    /* next bucket to move */
    uint64_t moved;     /* number of buckets of which all slots are sealed */
    uint64_t overflows; /* number of entries outside of their home bucket */
};

static uint64_t first_words[BUCKET_WORDS << FIRST_LOG2] __attribute__((aligned(64)));
static struct table tables[TABLES_MAX] = {{.words = first_words, .log2 = FIRST_LOG2}};
/* Own tables: [oldest, newest]; none if oldest > newest. Tables of fork parents: [inherited_from, inherited_to). */
static uint32_t oldest, newest;
static uint32_t inherited_from, inherited_to;

/* Returns the key of an address; a bijection. It mixes page and stretch, because objects often lie at the same offset
 * in their pages, and would all be in the same bucket of their group. */
static inline uint64_t key_of(uintptr_t address)
{
    uint64_t page = (address >> 12) * 0x1e3779b97u & PAGE_MASK;
    page ^= page >> 18;
    uint64_t stretch = (address >> STRETCH_LOG2 ^ page) & ((1u << GROUP_LOG2) - 1);
    return stretch << (PAGE_BITS + PLACE_BITS) | page << PLACE_BITS |
           (address >> 3 & ((1u << PLACE_BITS) - 1));
}

/* Returns the home bucket. Odd multiples of 8 use another group: a bucket is too small for a stretch's 16 addresses. */
static inline uint64_t bucket_of(uint64_t key, uint32_t log2)
{
    uint64_t group = key << (64 - PAGE_BITS - PLACE_BITS) >> (64 + GROUP_LOG2 - log2);
    return (group ^ (key & 1)) << GROUP_LOG2 | key >> (PAGE_BITS + PLACE_BITS);
}

static inline uint64_t entry_of(uint64_t key, uint32_t record)
{
    return key << RECORD_BITS | (record + 1);
}

static inline uint32_t record_of(uint64_t entry)
{
    return (uint32_t)(entry & RECORD_MASK) - 1;
}

/* True if the entry has the low bits of the key and is neither empty nor sealed. Takes one comparison. */
static inline bool tags_match(uint64_t entry, uint64_t key)
{
    return (entry ^ key << RECORD_BITS) - 1 < RECORD_MASK - 1;
}

static uint64_t *bucket_at(const struct table *t, uint64_t bucket)
{
    return t->words + bucket * BUCKET_WORDS;
}

/* Returns the bucket `distance` groups further: in another group, because a full bucket often has full neighbours. */
static uint64_t *bucket_beyond(const struct table *t, uint64_t home, unsigned distance)
{
    return bucket_at(t, (home + (distance << GROUP_LOG2)) & ((1ull << t->log2) - 1));
}

static inline bool place(uint64_t *bucket, uint64_t entry)
{
    for (unsigned i = 0; i < BUCKET_ENTRIES; i++)
        if (!load_relaxed(&bucket[i]) && atomic_swap_if64(&bucket[i], 0, entry))
            return true;
    return false;
}

/* Returns memory for a table, or NULL. For a large table asks for huge pages: otherwise each lookup misses the TLB. */
static uint64_t *new_words(uint32_t log2)
{
    uint64_t bytes = (uint64_t)BUCKET_WORDS * 8 << log2;
    uint64_t *words = ledger_private(&process.ledger, bytes);
    if (words && bytes >= HUGE_FROM)
        sys_call(SYS_madvise, words, bytes, MADV_HUGEPAGE);
    return words;
}

/*
 * Makes the table with the number after + 1, of 2^log2 buckets. If two threads do so at once, the slower one gives its
 * memory back and publishes the other thread's table, so that no thread waits. False: no memory, or TABLES_MAX reached.
 */
static bool grow(uint32_t after, uint32_t log2)
{
    uint32_t next = after + 1;
    if (next >= TABLES_MAX)
        return false;
    if (load_acquire(&newest) != after)
        return true;
    struct table *t = &tables[next];
    uint64_t claim = load_acquire(&t->claim);
    if (!claim) {
        uint64_t *words = new_words(log2);
        if (!words)
            return false;
        if (!__atomic_compare_exchange_n(&t->claim, &claim, (uint64_t)words | log2, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE))
            ledger_give_back(&process.ledger, words, (uint64_t)BUCKET_WORDS * 8 << log2);
        else
            claim = (uint64_t)words | log2;
    }
    store_relaxed(&t->words, (uint64_t *)(claim & ~63ull));
    store_relaxed(&t->log2, (uint32_t)(claim & 63));
    __atomic_compare_exchange_n(&newest, &after, next, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    return true;
}

static __attribute__((noinline)) bool place_further_cold(struct table *t, uint64_t home, uint64_t entry)
{
    uint64_t *bucket = bucket_at(t, home);
    atomic_add64(&bucket[BUCKET_ENTRIES], 1);
    for (unsigned i = 1; i < PROBE_BUCKETS; i++)
        if (place(bucket_beyond(t, home, i), entry)) {
            if (atomic_fetch_add64(&t->overflows, 1) + 1 > 1ull << t->log2 >> 2)
                grow((uint32_t)(t - tables), t->log2 + 1);
            return true;
        }
    atomic_add64(&bucket[BUCKET_ENTRIES], (uint64_t)-1);
    return false;
}

/* Stores the entry in its home bucket, or in another bucket that lookups try. False: all these buckets are full. */
static inline bool place_in_table(struct table *t, uint64_t key, uint64_t entry)
{
    uint64_t home = bucket_of(key, t->log2);
    return likely(place(bucket_at(t, home), entry)) || place_further_cold(t, home, entry);
}

/* Computes *key from the address in the entry's record. False: it does not match the entry, which is left over. */
static bool is_current(uint64_t entry, uint64_t *key)
{
    uint64_t address = load_relaxed(&process_sample(record_of(entry))->address);
    *key = key_of(address);
    return address && tags_match(entry, *key);
}

/*
 * Computes the key of an entry in its home bucket, whose number gives the key bits that the entry lacks. False: entry
 * and bucket disagree in the bits that both have, so this is not the home bucket; or the table has less than
 * 2^KEYS_LOG2 buckets, and too few such bits. Then the caller computes the key from the record: a cache miss more.
 */
static bool key_at_home(const struct table *t, uint64_t bucket, uint64_t entry, uint64_t *key)
{
    uint64_t low = entry >> RECORD_BITS, group = bucket >> GROUP_LOG2 ^ (low & 1);
    *key = (bucket & ((1u << GROUP_LOG2) - 1)) << (PAGE_BITS + PLACE_BITS) |
           group << (PAGE_BITS + PLACE_BITS + GROUP_LOG2 - t->log2) | low;
    return t->log2 >= KEYS_LOG2 && bucket_of(*key, t->log2) == bucket &&
           !((*key ^ low) & ((1ull << (64 - RECORD_BITS)) - 1));
}

/* Moves the entry of one slot, if it has one, from an old table to the newest table, and seals the slot. */
static void move_slot(const struct table *from, uint64_t bucket, uint64_t *slot)
{
    for (;;) {
        uint64_t entry = load_acquire(slot), key;
        if (entry == SEALED)
            return;
        if (!entry || (!key_at_home(from, bucket, entry, &key) && !is_current(entry, &key))) {
            if (atomic_swap_if64(slot, entry, SEALED))
                return;
            continue;
        }
        struct table *to = &tables[load_acquire(&newest)];
        if (!place_in_table(to, key, entry))
            return; /* no room: the entry stays, and the old table is never released, but still searched */
        if (atomic_swap_if64(slot, entry, SEALED))
            return;
        /* The sample was freed meanwhile. The copy in the newest table must stay, because by now it may be the entry of
         * a new sample with the same address and record. */
    }
}

/*
 * Gives back the memory of a table after its last entry has moved. A thread that still reads the table finds no entry,
 * and goes on to the next table. A thread that still inserts into the table checks is_emptied() afterwards.
 */
static void release_words(const struct table *t)
{
    if (t->words != first_words)
        ledger_empty_private(&process.ledger, t->words, (uint64_t)BUCKET_WORDS * 8 << t->log2);
}

static inline bool is_emptied(uint32_t table)
{
    return unlikely(load_acquire(&oldest) > table);
}

static void move_some(uint32_t from)
{
    struct table *t = &tables[from];
    for (unsigned n = 0; n < MOVE_PER_INSERT; n++) {
        uint64_t bucket = load_relaxed(&t->moving);
        if (bucket >> t->log2 || !atomic_swap_if64(&t->moving, bucket, bucket + 1))
            return;
        bool whole = true;
        for (unsigned i = 0; i < BUCKET_ENTRIES; i++) {
            uint64_t *slot = &bucket_at(t, bucket)[i];
            move_slot(t, bucket, slot);
            whole = whole && load_acquire(slot) == SEALED;
        }
        if (!whole)
            continue;
        if (atomic_fetch_add64(&t->moved, 1) + 1 == 1ull << t->log2 &&
            __atomic_compare_exchange_n(&oldest, &from, from + 1, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
            release_words(t);
            return;
        }
    }
}

void live_table_take_room(void)
{
    uint32_t n = load_acquire(&newest);
    if (n < oldest || tables[n].log2 < ROOM_LOG2)
        grow(n, ROOM_LOG2);
}

/* False: the table has no entry with the key, whose home bucket is `bucket`. */
static inline bool may_be_here(const uint64_t *bucket, uint64_t key)
{
    bool held = load_relaxed(&bucket[BUCKET_ENTRIES]) != 0;
    for (unsigned i = 0; i < BUCKET_ENTRIES; i++)
        held |= tags_match(load_relaxed(&bucket[i]), key);
    return held;
}

bool live_table_insert_new(uintptr_t address, uint32_t record)
{
    uint64_t key = key_of(address);
    uint32_t n = load_acquire(&newest);
    const struct table *t = &tables[n];
    if (unlikely(n != load_acquire(&oldest) || record >= RECORD_MASK - 1 || !live_filter_reach(address)))
        return false;
    uint64_t *bucket = bucket_at(t, bucket_of(key, t->log2));
    if (live_filter_may_hold((const void *)address) && may_be_here(bucket, key))
        return false;
    store_release(&process_sample(record)->address, address);
    if (unlikely(!place(bucket, entry_of(key, record)))) {
        store_release(&process_sample(record)->address, 0);
        return false;
    }
    /* The table was emptied meanwhile: the entry was moved, or is lost. A second entry for the sample does no harm. */
    if (is_emptied(n))
        return live_table_insert(address, record);
    live_filter_add(address);
    return true;
}

bool live_table_insert(uintptr_t address, uint32_t record)
{
    uint64_t key = key_of(address);
    if (record >= RECORD_MASK - 1 || !live_filter_reach(address))
        return false;
    store_release(&process_sample(record)->address, address);
    for (;;) {
        uint32_t n = load_acquire(&newest);
        struct table *t = &tables[n];
        bool own = n >= load_relaxed(&oldest);
        if (likely(own && place_in_table(t, key, entry_of(key, record)))) {
            if (is_emptied(n))
                continue;
            live_filter_add(address);
            uint32_t from = load_acquire(&oldest);
            if (unlikely(from < load_acquire(&newest)))
                move_some(from);
            return true;
        }
        if (!grow(n, own ? t->log2 + 1 : FIRST_LOG2)) {
            store_release(&process_sample(record)->address, 0);
            return false;
        }
    }
}

/* Takes the sample of an entry that matches the key of `address`. LIVE_TABLE_UNKNOWN: the record has another address or
 * another thread took the sample. If `inherited`, only removes the entry, which has no record in this process. */
static inline __attribute__((always_inline)) enum live_table_taken
claim(bool inherited, uint64_t *slot, uint64_t entry, uintptr_t address, uint32_t *record)
{
    if (inherited) {
        if (!atomic_swap_if64(slot, entry, 0))
            return LIVE_TABLE_UNKNOWN;
        live_filter_remove(address);
        return LIVE_TABLE_INHERITED;
    }
    struct ledger_sample *s = process_sample(record_of(entry));
    uint64_t key;
    if (load_relaxed(&s->address) != address) {
        if (!is_current(entry, &key))
            atomic_swap_if64(slot, entry, 0); /* left over; otherwise it is the entry of another sample */
        return LIVE_TABLE_UNKNOWN;
    }
    bool ours = atomic_swap_if64(&s->address, address, 0);
    atomic_swap_if64(slot, entry, 0);
    if (!ours)
        return LIVE_TABLE_UNKNOWN;
    live_filter_remove(address);
    *record = record_of(entry);
    return LIVE_TABLE_TAKEN;
}

static inline __attribute__((always_inline)) enum live_table_taken
take_from(struct table *t, bool inherited, uint64_t key, uintptr_t address, uint32_t *record)
{
    uint64_t home = bucket_of(key, t->log2);
    uint64_t *home_bucket = bucket_at(t, home), *bucket = home_bucket;
    for (unsigned b = 0; b < PROBE_BUCKETS; b++, bucket = bucket_beyond(t, home, b)) {
        for (unsigned i = 0; i < BUCKET_ENTRIES; i++) {
            uint64_t entry = load_acquire(&bucket[i]);
            if (likely(!tags_match(entry, key)))
                continue;
            /* Outside its home bucket, an entry may match another key (it lacks the top bits): claim() finds out. */
            enum live_table_taken taken = claim(inherited, &bucket[i], entry, address, record);
            if (taken == LIVE_TABLE_UNKNOWN)
                continue;
            if (b) {
                atomic_add64(&home_bucket[BUCKET_ENTRIES], (uint64_t)-1);
                atomic_add64(&t->overflows, (uint64_t)-1);
            }
            return taken;
        }
        if (likely(!load_acquire(&home_bucket[BUCKET_ENTRIES])))
            break;
    }
    return LIVE_TABLE_UNKNOWN;
}

static __attribute__((noinline)) enum live_table_taken take_inherited_cold(uint64_t key, uintptr_t address)
{
    for (uint32_t i = inherited_from; i < inherited_to; i++)
        if (take_from(&tables[i], true, key, address, NULL) != LIVE_TABLE_UNKNOWN)
            return LIVE_TABLE_INHERITED;
    return LIVE_TABLE_UNKNOWN;
}

enum live_table_taken live_table_take(uintptr_t address, uint32_t *record)
{
    uint64_t key = key_of(address);
    enum live_table_taken taken;
    /* `newest` is read in each turn, because an entry may move to a newer table during the search. */
    for (uint32_t i = load_acquire(&oldest); i <= load_acquire(&newest); i++)
        if ((taken = take_from(&tables[i], false, key, address, record)) != LIVE_TABLE_UNKNOWN)
            return taken;
    return likely(inherited_from == inherited_to) ? LIVE_TABLE_UNKNOWN : take_inherited_cold(key, address);
}

void live_table_disinherit(void)
{
    inherited_to = newest + 1;
    oldest = newest + 1;
    if (inherited_to > TABLES_MAX - 24) { /* after many generations of forks, the child forgets all tables */
        for (uint32_t i = 0; i < TABLES_MAX; i++)
            tables[i] = (struct table){0};
        inherited_from = inherited_to = 0;
        for (uint32_t i = 0; i < BUCKET_WORDS << FIRST_LOG2; i++)
            first_words[i] = 0;
        tables[0] = (struct table){.words = first_words, .log2 = FIRST_LOG2};
        oldest = newest = 0;
    }
}
