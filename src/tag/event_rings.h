/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_EVENT_RINGS_H
#define TAG_EVENT_RINGS_H

/*
 * Where the program's own events go: into the rings of the agent, if it traces; else into rings of the library's own,
 * beside the ledger of the process, made when the first event is switched on.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: the mappings, until the image ends.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring_write.h"

/** Returns whether events can be written; makes rings for this image if it has none. tag_ledger_open() was true. */
bool event_rings_open(void);
/** Makes the table beside the agent's rings, if the agent traces: later, seccomp may forbid that. */
void event_rings_prepare(void);
/**
 * Writes an event; the second word has its number, its size and its flags, and gets the thread. `before`: the result
 * of the short way (event_hot.h), which wrote nothing.
 */
void event_rings_append(enum sequence_result before, uint64_t *event, uint32_t words);
/**
 * Called before the thread makes a child that has its memory and its storage, and after that child has ended, with what
 * the first call has returned (0 to 3). In between the thread's events go into the ring that threads share.
 */
unsigned event_rings_child_begins(void);
void event_rings_child_ended(unsigned before);
/** Returns the kernel's number of the thread; 0: not known. In such a child: its maker's. */
uint32_t event_rings_thread(void);
/** Counts an event that cannot be written. */
void event_rings_lose(void);
/** Returns the time by CLOCK_MONOTONIC, or that at which the clock was stopped. */
uint64_t event_rings_ns(void);
/** Returns the offset of libc's struct rseq from the thread pointer; 0: there is none, or it is far. */
int16_t event_rings_area(void);
/** Stops the clock, which then makes no use of the time stamp counter. False: it was stopped before. */
bool event_rings_freeze(void);
void event_rings_thaw(void);
/** Before libc's fork(), in the parent: notes the rings if the forking thread was interrupted while it wrote. */
void event_rings_before_fork(unsigned part);

/** Puts the library between the program and the real syscall(2), when the latter was found (event_vfork.c). */
void event_vfork_begin(void);

#endif
