/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_CONTROL_PAGE_H
#define WIRE_CONTROL_PAGE_H

/*
 * The control page: what a user changes in a running process. A file of its own beside the ledger; written under a lock
 * by the owner or root, read by the target: an agent's at least every LEDGER_CONTROL_BYTES of a thread's allocations,
 * that of tags, and of call sites, at each call of such a place, which compares `state` with what it knows.
 *
 * Runs in: the tool (writer) and target (reader). Invariant: nothing that stands there may be trusted.
 */

#include <stdint.h>

#define LEDGER_CONTROL_MAGIC 0x314c5254434c4141u
#define LEDGER_CONTROL_BYTES (4u << 20)
struct ledger_control {
    uint64_t magic;
    uint64_t
        word; /* a period, 0: as started, otherwise 1 .. 2^40; and LEDGER_CONTROL_*. Anything else is ignored */
    /* Of tags and sites alone. */
    int32_t state; /* even, > 0; two more with each change, which is the last thing written */
    uint32_t
        listed; /* what is in force, see wire/deferred_rules.h: actions, queries, and in which of the two places */
};
#define LEDGER_STATE_FIRST    2
#define LEDGER_CONTROL_PERIOD ((1ull << 48) - 1)
/* No new samples; those that are live are followed to their end. */
#define LEDGER_CONTROL_OFF (1ull << 63)
/* Tags with no action of their own are off. */
#define LEDGER_CONTROL_TAGS_OFF (1ull << 61)
#define LEDGER_CONTROL_FREE_STACKS                                                                           \
    (1ull << 62) /* the stack of each sampled free, not of some hundred a second */

/* What is asked of one place: bits, with a time for each. The lists lie behind the page, backed before they are put
 * in force. */
enum ledger_ask {
    LEDGER_ASK_OFF,     /* what it makes from now on is not counted */
    LEDGER_ASK_ON,      /* where LEDGER_CONTROL_TAGS_OFF says off */
    LEDGER_ASK_STACKS,  /* each call with its stack */
    LEDGER_ASK_LATENCY, /* each call timed */
    LEDGER_ASK_FAIL,    /* by `fail` and `n` */
    LEDGER_ASKS
};
enum ledger_fail {
    LEDGER_FAIL_NTH,    /* the n-th call from now, that alone */
    LEDGER_FAIL_EVERY,  /* each n-th */
    LEDGER_FAIL_CHANCE, /* n of a million */
};
struct ledger_action {
    uint64_t key;                   /* ledger_action_key() */
    uint64_t until_ns[LEDGER_ASKS]; /* CLOCK_MONOTONIC; 0: until it is taken back */
    uint32_t asked;                 /* 1 << enum ledger_ask */
    uint16_t fail;                  /* enum ledger_fail */
    uint16_t serial;                /* another one: the calls are counted from 0 again */
    uint32_t n;
    uint32_t pad;
};
#define LEDGER_ACTIONS_MOST   32768u
#define LEDGER_ACTIONS_BYTES  (LEDGER_ACTIONS_MOST * sizeof(struct ledger_action)) /* of a list */
#define LEDGER_ACTIONS_SECOND (1u << 31)

/**
 * A place in the code, wherever it is loaded: by the build id of its file, or the path of one that has none, and the
 * address in it.
 */
static inline uint64_t ledger_action_key(const void *id, uint64_t bytes, uint64_t code)
{
    uint64_t h = code * 0x9e3779b97f4a7c15u + bytes;
    for (uint64_t i = 0; i < bytes; i++)
        h = (h ^ h >> 29 ^ ((const uint8_t *)id)[i]) * 0xbf58476d1ce4e5b9u;
    return h ^ h >> 32;
}

/** The same of a call site, by the address that the call returns to: no place of a tag has that key. */
static inline uint64_t ledger_site_key(const void *id, uint64_t bytes, uint64_t code)
{
    return ledger_action_key(id, bytes, ~code);
}

#endif
