/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_THREAD_STATE_H
#define AGENT_THREAD_STATE_H

/*
 * What the agent knows of the current thread. All zeros is a valid start: `left` 0 sends the first request to the cold
 * path, which fills the rest.
 *
 * Runs in: target. Threads: only its own, with its own signal handlers in between.
 */

#include <stdint.h>

#include "base/sigsafe/draw.h"
#include "unwind/stack_bounds.h"

/* We are inside a call into the allocator of our own making: what it asks for meanwhile is its own. */
enum thread_busy { THREAD_FREE, THREAD_CALLING, THREAD_NESTED /* and it did ask */ };

struct thread {
    uint64_t left; /* bytes until the cold path looks again; 0: at every request (exact mode, not begun) */
    uint64_t rest; /* bytes to the next sample beyond `left` */
    uint64_t random;
    uint64_t last_serial; /* of this thread's latest sample */
    uint64_t left_mark;   /* `left` right after it */
    uintptr_t *objects;   /* of sites.h: leads nowhere until `counts`, and in a child that was forked */
    char *
        sums; /* the thread's own of sites; in a child that was forked, what a handler interrupted may go on with */
    struct stack_bounds stack;
    uint64_t weighed_size; /* what `weight` was computed for last, with `weighed_period` */
    struct draw_weight weight;
    uint32_t generation; /* of the process: a fork child begins anew */
    uint16_t row;        /* in the ledger's threads */
    uint8_t has_row;
    uint8_t counts; /* it has `sums` in the ledger that is open */
    uint8_t shard;  /* of the ledger's counters */
    uint8_t busy;   /* enum thread_busy */
    uint8_t weighed_period;
    uint8_t
        reentry_depth; /* of ledger_enter(): signal handlers interrupt each other while they write to the ledger */
    uint8_t period; /* index of the period that `left` and `rest` were drawn with */
};

/* Static TLS is scarce where libraries are loaded late. */
_Static_assert(sizeof(struct thread) < 128, "thread-local state stays under 128 bytes");

extern __thread struct thread thread_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

#endif
