/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_EVENT_HOT_H
#define TAG_EVENT_HOT_H

/*
 * The short way of the program's own events into the rings: one call from the program's code, and one restartable
 * sequence. All that it reads lies in two lines of the cache, but for the event, the thread's word, and the ring.
 *
 * That memory is zero in a fork child, from its first instruction on, whoever made the child. So the child takes the
 * long way (event_rings.h), until it has rings of its own. So do the first event of each thread, events of threads that
 * must not write by sequences, and events that do not fit into the packet.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock, no system call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/sequence_x86_64.h"

/** What the short way needs of rings, which are those of the agent or the library's own. */
struct event_hot_rings {
    struct sequence_rings at;
    /* no event is written while it has LEDGER_CONTROL_TRACE_OFF; NULL: it never has */
    const uint64_t *control;
    /* the counter may be read while this is true; NULL: while event_hot_stop() says so */
    const bool *clock_is_tsc;
};

/**
 * Opens the short way, for an image that has made its rings. Signals are blocked: a handler might fork, and the child
 * would go on here with the parent's rings.
 */
void event_hot_open(const struct event_hot_rings *rings);
/** Closes the short way into the library's own rings while the clock is stopped, or opens it again. */
void event_hot_stop(bool stopped);

/**
 * The thread's word: in its lower half the kernel's number of the thread; in the upper one the generation of the
 * process in which that was so, with EVENT_HOT_SHARES if the kernel does not abort the thread's sequences.
 */
extern __thread uint64_t event_hot_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));
#define EVENT_HOT_SHARES (UINT64_C(1) << 63)

#endif
