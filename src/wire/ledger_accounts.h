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
 * An account: what one place in the code has made, and what of that is gone; the difference is live. Each shard of it
 * is written by one thread at a time, the last by all that have none of their own; they lie apart, so that threads do
 * not share lines.
 */
#define LEDGER_ACCOUNT_SHARDS    16u
#define LEDGER_ACCOUNTS_TOGETHER 128u

/*
 * Accounts lie in blocks of so many, a block of each shard behind that of the one before. Of an account: the index that
 * its words have in an array of them; what the map of objects has for it. And the other way round.
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
 * `now` has bytes, and above LEDGER_CALLS_SHIFT, signed, how many calls may come before they are handed on to `more`:
 * an event is one addition, whoever looks sees all of it or nothing, and its result is negative when it is time. `more`
 * less those is the calls; bytes are handed on to it in units of LEDGER_BYTES_CARRY, above LEDGER_MORE_SHIFT. Both
 * words are changed together then, and in each a phase changes: where these differ one word was read before that and
 * the other one after it.
 */
struct ledger_count {
    uint64_t now, more;
};
#define LEDGER_CALLS_SHIFT 53
#define LEDGER_CALLS_MOST  1023u                              /* until they are handed on */
#define LEDGER_NOW_PHASE   (1ull << (LEDGER_CALLS_SHIFT - 1)) /* above the bytes */
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
    struct ledger_count made, gone;
};
struct ledger_accounts {
    struct ledger_words words[LEDGER_ACCOUNT_SHARDS][LEDGER_ACCOUNTS_TOGETHER];
};

/* A descriptor that was used at least once. */
struct ledger_tag {
    uint64_t code;    /* address of the place in its ELF file */
    uint64_t failed;  /* requests */
    uint64_t unseen;  /* objects that others freed, as came to light, or that could not be followed */
    uint32_t account; /* its index; 0: being entered */
    uint32_t module;  /* record; LEDGER_NONE: code outside every module */
    uint32_t class, name, file; /* strings */
    uint32_t line;              /* 0: not known */
    /*
     * The peak of live bytes is looked for now and then: this much was live at once, surely, and at most that plus what
     * each shard makes between two looks: the most it ever was, or since its last one, whose sum of bytes made is here.
     */
    uint64_t peak_bytes;
    uint32_t between_bytes;
    uint32_t looked_bytes[LEDGER_ACCOUNT_SHARDS]; /* lower half of it */
};

#endif
