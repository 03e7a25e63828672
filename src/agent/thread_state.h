/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_THREAD_STATE_H
#define AGENT_THREAD_STATE_H

/*
 * The state of the current thread. All zeros is a valid start: `left` is 0 and sends the first request to the cold
 * path, which fills in the rest.
 *
 * Runs in: target. Threads: only the thread itself, and its signal handlers.
 */

#include <stdint.h>

#include "base/sigsafe/draw.h"
#include "unwind/stack_bounds.h"

/*
 * THREAD_CALLING: the agent itself has called the allocator (hook_layers_probe()). THREAD_NESTED: and a hook was
 * entered during that call.
 */
enum thread_busy { THREAD_FREE, THREAD_CALLING, THREAD_NESTED };

struct thread {
    /* bytes until the next request that takes the cold path; 0: each request (exact mode, or a new thread) */
    uint64_t left;
    uint64_t rest; /* bytes to the next sample beyond `left` */
    uint64_t random;
    uint64_t last_serial; /* of the thread's latest sample */
    uint64_t left_mark;   /* `left` right after that sample */
    /* map of objects of exact sites; object_map_none until `counts` is set, and in a fork child */
    uintptr_t *objects;
    /* The thread's sums of exact sites. In a fork child: memory for code that a forking signal handler interrupted. */
    char *sums;
    struct stack_bounds stack;
    uint64_t weighed_size; /* the size, with `weighed_period`, that `weight` was computed for */
    struct draw_weight weight;
    uint32_t generation; /* of the process that the thread has attached to; a fork child has the next one */
    uint16_t row;        /* in the ledger's threads */
    uint8_t has_row;
    uint8_t counts; /* the thread has `sums` in the current ledger */
    uint8_t shard;  /* of the ledger's counters */
    uint8_t busy;   /* enum thread_busy */
    uint8_t weighed_period;
    /* of ledger_enter(): signal handlers interrupt each other while they write to the ledger */
    uint8_t reentry_depth;
    uint8_t period; /* index of the period that `left` and `rest` were drawn with */
};

/* Static TLS is scarce where libraries are loaded late. */
_Static_assert(sizeof(struct thread) < 128, "thread-local state stays under 128 bytes");

extern __thread struct thread thread_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

#endif
