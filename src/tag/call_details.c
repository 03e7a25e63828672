/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/call_details.h"

#include <string.h>
#include <time.h>

#include "tag/tag_ledger.h"
#include "target/ledger_stacks.h"
#include "target/stack_calls.h"

#define DEPTH_MAX 128u
#define UNDERWAY  1024u
#define PROBES    8u

#define AT(table, type, index) ledger_at(&process.ledger, table, type, index)

/* Ignores losses of a stack walk: their counters are for samples. In the ledger, a cut stack is marked as cut. */
static void ignore_loss(enum ledger_loss what)
{
    (void)what;
}

static struct word_cache rules; /* the unwind rules of the walk */
static struct ledger_stacks stacks = LEDGER_STACKS_OF(&process.ledger, &rules, ignore_loss);
static struct stack_calls called = STACK_CALLS_OF(&process.ledger);
static struct intern timed = {.ledger = &process.ledger};

static __thread struct stack_bounds bounds __attribute__((tls_model("initial-exec")));

/*
 * A hash table of the timed calls that have not returned. The key is the stack frame that makes the call: a frame
 * belongs to one thread and makes one call at a time. If longjmp() or an exception leaves a call, its record stays
 * until another call uses the same frame or the same slot.
 */
static struct {
    uintptr_t frame; /* 0: the slot is free */
    uint32_t account;
    uint64_t began_ns;
} underway[UNDERWAY];

void call_details_stack(uint32_t account, size_t bytes, const struct walk_start *start)
{
    uint32_t ids[DEPTH_MAX];
    enum walk_end end;
    struct walker w = ledger_stacks_walker(&stacks);
    unsigned depth = walk_stack(&w, &bounds, start, ids, DEPTH_MAX, &end);
    uint32_t stack = ledger_stacks_number(&stacks, ids, depth, ledger_stacks_hash(ids, depth), end);
    if (!stack_calls_add(&called, account, stack, bytes))
        tag_ledger_count_loss(LEDGER_LOST_DETAILS);
}

static unsigned place_of(uintptr_t frame, unsigned probe)
{
    return (unsigned)(frame * 0x9e3779b97f4a7c15u >> 40) + probe;
}

void call_details_begin(uint32_t account, uintptr_t frame)
{
    unsigned at = place_of(frame, 0) % UNDERWAY;
    for (unsigned probe = 0; probe < PROBES; probe++) {
        unsigned i = place_of(frame, probe) % UNDERWAY;
        uintptr_t free = 0;
        if (load_relaxed(&underway[i].frame) == frame ||
            __atomic_compare_exchange_n(&underway[i].frame, &free, frame, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            at = i;
            break;
        }
        if (probe == PROBES - 1) {
            store_relaxed(&underway[at].frame, frame); /* replaces another call, whose duration is lost */
            tag_ledger_count_loss(LEDGER_LOST_DETAILS);
        }
    }
    underway[at].account = account;
    underway[at].began_ns = process_ticks();
}

static bool same_timed(const void *key, uint32_t number)
{
    return AT(LEDGER_LATENCIES, struct ledger_latency, number)->account == *(const uint32_t *)key;
}

static struct ledger_latency *times_of(uint32_t account)
{
    uint32_t hash = account * 0x9e3779b9u, at = intern_find(&timed, hash, same_timed, &account);
    if (at == INTERN_NONE) {
        at = ledger_append(&process.ledger, LEDGER_LATENCIES, 1);
        if (at == LEDGER_NONE)
            return NULL;
        store_release(&AT(LEDGER_LATENCIES, struct ledger_latency, at)->account, account);
        intern_add(&timed, hash, at);
    }
    return AT(LEDGER_LATENCIES, struct ledger_latency, at);
}

uint64_t call_details_end(uint32_t account, uintptr_t frame)
{
    uint64_t now = process_ticks();
    for (unsigned probe = 0; probe < PROBES; probe++) {
        unsigned i = place_of(frame, probe) % UNDERWAY;
        if (load_relaxed(&underway[i].frame) != frame)
            continue;
        uint64_t took = now - underway[i].began_ns;
        bool same = underway[i].account == account;
        store_relaxed(&underway[i].frame, 0);
        return same && (int64_t)took >= 0 ? took : UINT64_MAX;
    }
    return UINT64_MAX;
}

void call_details_time(uint32_t account, uint64_t took_ns)
{
    struct ledger_latency *l = times_of(account);
    if (!l) {
        tag_ledger_count_loss(LEDGER_LOST_DETAILS);
        return;
    }
    __atomic_fetch_add(&l->calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&l->sum_ns, took_ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&l->of[ledger_latency_class(took_ns)], 1, __ATOMIC_RELAXED);
    for (uint64_t most = load_relaxed(&l->most_ns); most < took_ns;)
        if (__atomic_compare_exchange_n(&l->most_ns, &most, took_ns, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            break;
}

void call_details_reset(void)
{
    ledger_stacks_reset(&stacks);
    stack_calls_reset(&called);
    intern_reset(&timed);
    memset(underway, 0, sizeof(underway));
}
