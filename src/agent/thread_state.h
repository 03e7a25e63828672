/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_THREAD_STATE_H
#define AGENT_THREAD_STATE_H

/*
 * The state of the current thread. It is zero at first (with sites, except `objects`): `left` 0 sends the first request
 * of the thread to the cold path, which initialises the other members.
 *
 * Runs in: target. Threads: only the thread itself, and its signal handlers.
 */

#include <stdint.h>

#include "base/sigsafe/draw.h"
#include "unwind/stack_bounds.h"

/*
 * THREAD_CALLING: the agent itself is calling the allocator (hook_layers_probe()). THREAD_NESTED: during that call the
 * allocator has called one of our hooks.
 */
enum thread_busy { THREAD_FREE, THREAD_CALLING, THREAD_NESTED };

struct thread {
    /* bytes until a request takes the cold path; 0: each request does (exact mode, new thread) */
    uint64_t left;
    uint64_t rest;        /* bytes from the end of `left` to the next sample */
    uint64_t random;      /* state of draw_next() */
    uint64_t last_serial; /* serial of the sample that the thread allocated last */
    uint64_t left_mark;   /* `left` right after that sample */
    /* for accounts of sites: the directory of the map of objects, as objects_table_of() takes it; OBJECT_MAP_NONE_VIEW:
     * the thread has no shard of sums */
    const char *objects;
    /*
     * The shard of sums of sites that this thread adds to. In a fork child, private memory is mapped at this address
     * (sites_forked.c) until the child has sums of its own.
     */
    char *sums;
    struct stack_bounds stack;
    uint64_t weighed_size; /* `weight` was computed for this size and for `weighed_period` */
    struct draw_weight weight;
    uint32_t generation; /* process.generation when the thread was attached; a fork child has a higher one */
    uint16_t row;        /* index of the thread's record in the ledger; 0: the record "other" */
    uint8_t has_row;     /* `row` is set */
    uint8_t counts;      /* the thread has `sums` in the current ledger */
    uint8_t shard;       /* index of the thread's shard in struct ledger_header */
    uint8_t busy;        /* enum thread_busy */
    uint8_t weighed_period;
    /* number of calls of ledger_enter() that ledger_exit() has not ended yet; code that uses the ledger may nest */
    uint8_t reentry_depth;
    uint8_t period; /* index of the period for which `left` and `rest` were drawn; UINT8_MAX: none */
    /* for tracer_general.c: the class of the last allocation that a cold half has made; and whether the thread is in
     * a function that may call another one through `next` */
    uint8_t traced_call, traced_inside;
};

/* If dlopen() loads the agent, its thread-local state must fit into the little static TLS that is left. */
_Static_assert(sizeof(struct thread) < 128, "thread-local state stays under 128 bytes");

extern __thread struct thread thread_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

#endif
