/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_LEDGER_ACCOUNTS_H
#define WIRE_LEDGER_ACCOUNTS_H

/*
 * The ledger's tables of tags: exact counts, written by inline code of the program and by the tag library.
 *
 * Runs in: target and tool.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * An account counts the objects that one place in the code has allocated (`allocated`), and those of them that were
 * freed (`released`); the difference is live. An account has one set of counters in each shard. Only one thread at a
 * time writes to a shard, except to the last one: all threads without a shard of their own write to it. The shards lie
 * apart, so that threads do not share cache lines.
 */
#define LEDGER_ACCOUNT_SHARDS    16u
#define LEDGER_ACCOUNTS_TOGETHER 128u

/*
 * Accounts lie in blocks of `together`. A block has the counters of shard 0 for all of its accounts, then the counters
 * of shard 1, and so on. If the whole table is read as one array of sets of counters, ledger_index_of() returns the
 * index of the account's set in shard 0; the map of objects stores this index. ledger_number_at() is the inverse.
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
 * `now` has bytes in its low bits and, from bit LEDGER_CALLS_SHIFT on, a signed number: how many more calls fit before
 * the count must be carried over to `more`. So the writer counts a call and its bytes with a single addition: a reader
 * sees both or neither, and a negative result tells the writer to carry. The number of calls is the number in the low
 * LEDGER_MORE_SHIFT bits of `more`, less the signed number in `now`. The bits from LEDGER_MORE_SHIFT to 62 of `more`
 * have bytes in units of LEDGER_BYTES_CARRY.
 *
 * A carry changes both words, and flips a phase bit in each. If the phase bits differ, the reader read one word before
 * a carry and the other word after it.
 */
struct ledger_count {
    uint64_t now, more;
};
#define LEDGER_CALLS_SHIFT 53
#define LEDGER_CALLS_MOST  1023u                              /* calls between two carries, at most */
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

/* A place with tags (struct allium_tag), of which at least one was used. Record n belongs to account n. */
struct ledger_tag {
    uint64_t code;   /* virtual address of the place in its ELF file */
    uint64_t failed; /* failed requests */
    /* objects whose free was not seen (their address was allocated again), or that could not be put into the map */
    uint64_t unseen;
    uint32_t account;           /* index of the account; 0: the record is not complete */
    uint32_t module;            /* record number; LEDGER_NONE: code outside every module */
    uint32_t class, name, file; /* offsets in LEDGER_STRINGS */
    uint32_t line;              /* 0: not known */
    /*
     * The threads add up the live bytes of all shards from time to time. `peak_bytes`, the largest sum, is a lower
     * bound of the peak. The upper bound adds, for each shard, `between_bytes`, the most bytes that any shard allocated
     * between two sums of its own thread, or the bytes that this shard has allocated since the last sum of its thread,
     * if these are more.
     */
    uint64_t peak_bytes;
    uint32_t between_bytes;
    /* low 32 bits of the bytes that each shard had allocated when its own thread last added up */
    uint32_t looked_bytes[LEDGER_ACCOUNT_SHARDS];
};

#endif
