/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_CONTROL_PAGE_H
#define WIRE_CONTROL_PAGE_H

/*
 * The control page: the settings that a user can change in a running process, in a file of its own beside the ledger.
 * The target makes the file, and then only reads it. The tool, run by the owner or root, writes to the file under
 * flock(2). The agent reads `word` at least once in LEDGER_CONTROL_BYTES of requested bytes of each thread. Each call
 * of a tag or of a call site compares `state` with a number that is stored for the tag or site.
 *
 * Runs in: the tool (writer) and target (reader). Invariant: the reader trusts no value of the page.
 */

#include <stdint.h>

#define LEDGER_CONTROL_MAGIC 0x314c5254434c4141u
#define LEDGER_CONTROL_BYTES (4u << 20)
struct ledger_control {
    uint64_t magic;
    /* LEDGER_CONTROL_* flags, and in the bits of LEDGER_CONTROL_PERIOD the sampling period in bytes: 1 to 2^40, or 0
     * for the period at program start. If the period is larger, the agent ignores the period, LEDGER_CONTROL_OFF and
     * LEDGER_CONTROL_FREE_STACKS. */
    uint64_t word;
    /* The members from here on are for tags and sites only. */
    /* even, > 0; the tool adds 2 with each change of rules or of LEDGER_CONTROL_TAGS_OFF, after all other writes */
    int32_t state;
    /* the rules in force: the number of actions, the number of queries << LEDGER_QUERIES_SHIFT, and the flag
     * LEDGER_ACTIONS_SECOND if they are in the second list (wire/deferred_rules.h) */
    uint32_t listed;
};
#define LEDGER_STATE_FIRST    2
#define LEDGER_CONTROL_PERIOD ((1ull << 48) - 1)
/* The agent takes no new samples. It follows live samples until they are freed. */
#define LEDGER_CONTROL_OFF (1ull << 63)
/* Set by the tool when it sees that the process has entered seccomp after its ledger was made: the target then makes no
 * system call to grow the ledger or its own tables. */
#define LEDGER_CONTROL_SEALED (1ull << 60)
/* The full agent writes no events into the rings of the process. Sums of events (--sum) go on. */
#define LEDGER_CONTROL_TRACE_OFF (1ull << 59)
/* The full agent writes no events of the allocator into the rings. It writes others, such as the program's own. */
#define LEDGER_CONTROL_ALLOC_OFF (1ull << 58)
/* Events of the allocator are written if neither is set. */
#define LEDGER_CONTROL_ALLOC_BITS (LEDGER_CONTROL_TRACE_OFF | LEDGER_CONTROL_ALLOC_OFF)
/* Only tags with LEDGER_ACTION_ON are counted. */
#define LEDGER_CONTROL_TAGS_OFF (1ull << 61)
/* The agent records the stack of each free of a sample; without this flag, of a few hundred frees a second. */
#define LEDGER_CONTROL_FREE_STACKS (1ull << 62)

/* The kinds of actions that a rule can request for a place (a tag or a call site). For call sites only
 * LEDGER_ACTION_STACKS has an effect. Two lists of struct ledger_action, sorted by key, follow the control page in the
 * file. The tool allocates the pages of a list before it puts the list in force. */
enum ledger_action_kind {
    LEDGER_ACTION_OFF,     /* objects allocated while it is in force are not counted */
    LEDGER_ACTION_ON,      /* overrides LEDGER_CONTROL_TAGS_OFF */
    LEDGER_ACTION_STACKS,  /* each call is counted by its stack */
    LEDGER_ACTION_LATENCY, /* each call is timed */
    LEDGER_ACTION_FAIL,    /* calls fail as `fail` and `n` of the action say */
    LEDGER_ACTION_KINDS
};
enum ledger_fail {
    LEDGER_FAIL_NTH,    /* only the n-th call since the rule was set fails */
    LEDGER_FAIL_EVERY,  /* every n-th call fails */
    LEDGER_FAIL_CHANCE, /* n calls of a million fail, at random */
};
struct ledger_action {
    uint64_t key; /* ledger_action_key() */
    /* end time of each kind, in nanoseconds of CLOCK_MONOTONIC; 0: in force until the user cancels it */
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

/*
 * Which events of programs (<allium/event.h>) are on: at LEDGER_CONTROL_EVENTS_AT in the page. Inline code of programs
 * reads `word`.
 */
#define LEDGER_CONTROL_EVENTS_AT 64
#define LEDGER_EVENT_LIST_BYTES  1024u
struct ledger_control_events {
    /* 0: none. Else bit 0 tells which list is in force, and the other bits change with each list. The tool writes the
     * other list and `last`, then the word. */
    uint32_t word;
    uint32_t last;                          /* the last word that was not 0 */
    char lists[2][LEDGER_EVENT_LIST_BYTES]; /* event_list.h; each ends with NUL */
};

static inline const struct ledger_control_events *ledger_control_events(const struct ledger_control *page)
{
    return (const struct ledger_control_events *)(const void *)((const char *)page +
                                                                LEDGER_CONTROL_EVENTS_AT);
}

/** Returns the word that puts the other list in force, after the last word that was not 0. */
static inline uint32_t ledger_events_next(uint32_t last)
{
    const uint32_t next_word = (last ^ 1) + 2;
    return next_word ? next_word : 2;
}

/**
 * Returns the key of a place in the code. The key does not depend on the load address. `id`: `bytes` bytes, the build
 * id of the ELF file that has the place, or its path if it has no build id; `code`: the virtual address in that file.
 */
static inline uint64_t ledger_action_key(const void *id, uint64_t bytes, uint64_t code)
{
    uint64_t h = code * 0x9e3779b97f4a7c15u + bytes;
    for (uint64_t i = 0; i < bytes; i++)
        h = (h ^ h >> 29 ^ ((const uint8_t *)id)[i]) * 0xbf58476d1ce4e5b9u;
    return h ^ h >> 32;
}

/**
 * Returns the key of a call site; `code`: the return address of the call, as a virtual address in the ELF file. A tag
 * with the same address has another key.
 */
static inline uint64_t ledger_site_key(const void *id, uint64_t bytes, uint64_t code)
{
    return ledger_action_key(id, bytes, ~code);
}

#endif
