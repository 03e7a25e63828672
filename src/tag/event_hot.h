/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_EVENT_HOT_H
#define TAG_EVENT_HOT_H

/*
 * The short way of the program's own events into the rings: one call from the program's code, and one restartable
 * sequence. Apart from the event, the thread's word, the ring and the agent's switches, it reads only two lines of the
 * cache.
 *
 * The kernel clears these two lines in each fork child (MADV_WIPEONFORK). So the child takes the long way
 * (event_rings.h) until it has rings of its own. The long way is also for the first event of each thread, for threads
 * that must not run sequences, and for events that do not fit into the packet.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock, no system call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/sequence_x86_64.h"

/** The rings of the short way: the agent's, or the library's own. */
struct event_hot_rings {
    struct sequence_rings at;
    /* while *control has LEDGER_CONTROL_TRACE_OFF, no event is written; NULL: events are always written */
    const uint64_t *control;
    /* while this is false, the time stamp counter must not be read; NULL: see event_hot_stop() */
    const bool *clock_is_tsc;
};

/**
 * Opens the short way into rings that this process image has made. The caller has blocked all signals: if a handler
 * forked here, the child would open the short way into its parent's rings.
 */
void event_hot_open(const struct event_hot_rings *rings);
/** Closes the short way into the library's own rings while the clock is stopped, or opens it again. */
void event_hot_stop(bool stopped);

/**
 * The thread's word: in the lower half the kernel's number of the thread, in the upper half the generation of the
 * process that has this thread. EVENT_HOT_SHARES is set if the kernel does not abort the thread's sequences.
 */
extern __thread uint64_t event_hot_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));
#define EVENT_HOT_SHARES (UINT64_C(1) << 63)

#endif
