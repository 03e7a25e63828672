/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_LEDGER_ACCOUNTS_H
#define WIRE_LEDGER_ACCOUNTS_H

/*
 * The ledger's tables of tags: exact counts, written by inlined code of the program.
 *
 * Runs in: target and tool.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * An account counts the objects that one place in the code has allocated (`allocated`), and those of them that were
 * freed (`released`); the difference is live. An account has one set of counters in each shard. One thread at a time
 * writes to a shard; all threads without a shard of their own write to the last one. The shards lie apart, so that
 * threads do not share cache lines.
 */
#define LEDGER_ACCOUNT_SHARDS    16u
#define LEDGER_ACCOUNTS_TOGETHER 128u

/*
 * Accounts lie in blocks of `together`. A block has the counters of shard 0 for all of its accounts, then
 * those of shard 1, and so on. ledger_index_of() returns the index of the account's counters in shard 0, in
 * the flat array of counters; the map of objects stores this index. ledger_number_at() is the inverse.
 */
static inline uint32_t ledger_index_of(uint32_t number, uint32_t together)
{
    return number / together * together * LEDGER_ACCOUNT_SHARDS + number % together;
}

static inline uint32_t ledger_number_at(uint32_t index, uint32_t together)
{
    return index / (together * LEDGER_ACCOUNT_SHARDS) * together + index % together;
}

/*
 * A count of calls and bytes, written without a lock.
 *
 * `now` has bytes in its low bits and, from bit LEDGER_CALLS_SHIFT on, a signed number: how many more calls
 * fit before the count must be carried over to `more`. So an event is a single addition: a reader sees all of
 * it or nothing, and a negative result tells the writer to carry. `more` has the calls in its low
 * LEDGER_MORE_SHIFT bits; the number of calls is `more` less the signed number in `now`. Above them `more`
 * has bytes in units of LEDGER_BYTES_CARRY.
 *
 * A carry changes both words, and flips a phase bit in each. If the phase bits differ, the reader read one
 * word before the carry and the other one after it.
 */
struct ledger_count {
    uint64_t now, more;
};
#define LEDGER_CALLS_SHIFT 53
#define LEDGER_CALLS_MOST  1023u                              /* before a carry */
#define LEDGER_NOW_PHASE   (1ull << (LEDGER_CALLS_SHIFT - 1)) /* the bit above the bytes */
#define LEDGER_BYTES_CARRY (1ull << (LEDGER_CALLS_SHIFT - 2))
#define LEDGER_MORE_SHIFT  48
#define LEDGER_MORE_PHASE  (1ull << 63)

static inline uint64_t ledger_count_calls(struct ledger_count c)
{
    return (c.more - (uint64_t)((int64_t)c.now >> LEDGER_CALLS_SHIFT)) & ((1ull << LEDGER_MORE_SHIFT) - 1);
}

static inline uint64_t ledger_count_bytes(struct ledger_count c)
{
    return (c.now & (LEDGER_NOW_PHASE - 1)) +
           ((c.more & ~LEDGER_MORE_PHASE) >> LEDGER_MORE_SHIFT) * LEDGER_BYTES_CARRY;
}

static inline bool ledger_count_is_torn(struct ledger_count c)
{
    return !(c.now & LEDGER_NOW_PHASE) != !(c.more & LEDGER_MORE_PHASE);
}

struct ledger_words {
    struct ledger_count allocated, released;
};
struct ledger_accounts {
    struct ledger_words words[LEDGER_ACCOUNT_SHARDS][LEDGER_ACCOUNTS_TOGETHER];
};

/* A tag (struct allium_tag of the program) that was used at least once. */
struct ledger_tag {
    uint64_t code;   /* address of the place in its ELF file */
    uint64_t failed; /* failed requests */
    /* objects whose free was not seen (their address was allocated again), or that could not be put into the map */
    uint64_t unseen;
    uint32_t account;           /* index of the account; 0: the record is being written */
    uint32_t module;            /* record number; LEDGER_NONE: code outside every module */
    uint32_t class, name, file; /* offsets in LEDGER_STRINGS */
    uint32_t line;              /* 0: not known */
    /*
     * Live bytes are added up from time to time. `peak_bytes`, the largest sum, is a lower bound of the peak. The upper
     * bound adds, for each shard, the most bytes that any shard allocated between two sums (`between_bytes`), or the
     * bytes that the shard has allocated since the last sum, if these are more.
     */
    uint64_t peak_bytes;
    uint32_t between_bytes;
    /* low 32 bits of the bytes that each shard had allocated at the last sum */
    uint32_t looked_bytes[LEDGER_ACCOUNT_SHARDS];
};

#endif
