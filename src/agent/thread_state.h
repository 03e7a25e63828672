/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_THREAD_STATE_H
#define AGENT_THREAD_STATE_H

/*
 * The state of the current thread. All zeros is a valid start: `left` 0 sends the first request of the thread to the
 * cold path, which initialises the rest.
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
    uint64_t rest; /* bytes from the end of `left` to the next sample */
    uint64_t random;
    uint64_t last_serial; /* of the thread's latest sample */
    uint64_t left_mark;   /* `left` right after that sample */
    /* the map of objects, for accounts of sites; object_map_none while `counts` is false, and in a fork child */
    uintptr_t *objects;
    /*
     * The sums of sites that this thread adds to. In a fork child: a placeholder, for code that a forking handler
     * interrupted.
     */
    char *sums;
    struct stack_bounds stack;
    uint64_t weighed_size; /* the size, with `weighed_period`, that `weight` was computed for */
    struct draw_weight weight;
    uint32_t generation; /* process.generation when the thread was attached; a fork child has a higher one */
    uint16_t row;        /* index of the thread's record in the ledger */
    uint8_t has_row;
    uint8_t counts; /* the thread has `sums` in the current ledger */
    uint8_t shard;  /* of the ledger's counters */
    uint8_t busy;   /* enum thread_busy */
    uint8_t weighed_period;
    /* number of ledger_enter() without ledger_exit(): signal handlers that use the ledger may interrupt each other */
    uint8_t reentry_depth;
    uint8_t period; /* index of the period that `left` and `rest` were drawn with */
};

/* Static TLS is scarce for libraries that dlopen() loads. */
_Static_assert(sizeof(struct thread) < 128, "thread-local state stays under 128 bytes");

extern __thread struct thread thread_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

#endif
