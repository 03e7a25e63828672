/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_CONTROL_PAGE_H
#define WIRE_CONTROL_PAGE_H

/*
 * The control page: the settings that a user can change in a running process. It is a file of its own beside
 * the ledger. The owner or root writes it under a lock, and the target reads it. The agent reads it at least
 * every LEDGER_CONTROL_BYTES of a thread's allocations. A tag or a call site reads it at each call: it
 * compares `state` with the state that it last saw.
 *
 * Runs in: the tool (writer) and target (reader). Invariant: the reader trusts nothing that it finds here.
 */

#include <stdint.h>

#define LEDGER_CONTROL_MAGIC 0x314c5254434c4141u
#define LEDGER_CONTROL_BYTES (4u << 20)
struct ledger_control {
    uint64_t magic;
    /* LEDGER_CONTROL_* flags, and the sampling period: 1 to 2^40, or 0 for the period at program start. Other periods
     * are ignored. */
    uint64_t word;
    /* The members from here on are for tags and sites only. */
    int32_t state; /* even, > 0; grows by 2 with each change, and is written last */
    /* which rules are in force (wire/deferred_rules.h): the numbers of actions and of queries, and which of
     * the two lists */
    uint32_t listed;
};
#define LEDGER_STATE_FIRST    2
#define LEDGER_CONTROL_PERIOD ((1ull << 48) - 1)
/* No new samples are taken. Samples that are live are followed until they are freed. */
#define LEDGER_CONTROL_OFF (1ull << 63)
/* Set by the tool when it sees that the process is under seccomp: the target may make no system call for growth. */
#define LEDGER_CONTROL_SEALED (1ull << 60)
/* Tags without an action of their own are not counted. */
#define LEDGER_CONTROL_TAGS_OFF (1ull << 61)
/* The agent records the stack of each sampled free. Without this flag, it records some hundred a second. */
#define LEDGER_CONTROL_FREE_STACKS (1ull << 62)

/* What a rule can do to one place (a tag or a call site). A place has one bit and one end time for each kind. Two
 * lists of actions follow the control page in the file. The tool allocates the pages of a list before it activates
 * the list. */
enum ledger_action_kind {
    LEDGER_ACTION_OFF,     /* objects allocated from now on are not counted */
    LEDGER_ACTION_ON,      /* overrides LEDGER_CONTROL_TAGS_OFF */
    LEDGER_ACTION_STACKS,  /* the stack of each call is recorded */
    LEDGER_ACTION_LATENCY, /* each call is timed */
    LEDGER_ACTION_FAIL,    /* calls fail, as `fail` and `n` say */
    LEDGER_ACTION_KINDS
};
enum ledger_fail {
    LEDGER_FAIL_NTH,    /* only the n-th call from now on fails */
    LEDGER_FAIL_EVERY,  /* every n-th call fails */
    LEDGER_FAIL_CHANCE, /* n calls of a million fail, at random */
};
struct ledger_action {
    uint64_t key; /* ledger_action_key() */
    /* end time on CLOCK_MONOTONIC; 0: until the user cancels the action */
    uint64_t until_ns[LEDGER_ACTION_KINDS];
    uint32_t actions; /* bits: 1 << enum ledger_action_kind */
    uint16_t fail;    /* enum ledger_fail */
    uint16_t serial;  /* a new value restarts the count of calls at 0 */
    uint32_t n;
    uint32_t pad;
};
#define LEDGER_ACTIONS_MOST   32768u
#define LEDGER_ACTIONS_BYTES  (LEDGER_ACTIONS_MOST * sizeof(struct ledger_action)) /* size of one list */
#define LEDGER_ACTIONS_SECOND (1u << 31)

/**
 * Returns the key of a place in the code, which does not depend on the load address. `id`: the build id of its ELF
 * file, or the path if the file has none; `code`: the address in the file.
 */
static inline uint64_t ledger_action_key(const void *id, uint64_t bytes, uint64_t code)
{
    uint64_t h = code * 0x9e3779b97f4a7c15u + bytes;
    for (uint64_t i = 0; i < bytes; i++)
        h = (h ^ h >> 29 ^ ((const uint8_t *)id)[i]) * 0xbf58476d1ce4e5b9u;
    return h ^ h >> 32;
}

/** Returns the key of a call site; `code`: the return address of the call. It differs from the keys of all tags. */
static inline uint64_t ledger_site_key(const void *id, uint64_t bytes, uint64_t code)
{
    return ledger_action_key(id, bytes, ~code);
}

#endif
