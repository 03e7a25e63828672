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
 * event_rings_child_begins() is called before the thread makes a child that shares its memory and its thread-local
 * storage; event_rings_child_ended() is called after the child has ended, with the result of the first call (0 to 3).
 * In between, the thread's events go into the ring that threads share.
 */
unsigned event_rings_child_begins(void);
void event_rings_child_ended(unsigned before);
/** Returns the kernel's number of the thread; 0: not known. In such a child: that of the parent's thread. */
uint32_t event_rings_thread(void);
/** Counts an event that cannot be written. */
void event_rings_lose(void);
/** Returns CLOCK_MONOTONIC in ns; while the clock is stopped, the time at which it stopped. */
uint64_t event_rings_ns(void);
/**
 * Returns the offset of libc's struct rseq from the thread pointer; 0: libc has none, or the offset needs more than 16
 * bits.
 */
int16_t event_rings_area(void);
/** Stops the clock, which then makes no use of the time stamp counter. False: it was stopped before. */
bool event_rings_freeze(void);
void event_rings_thaw(void);
/** Before libc's fork(), in the parent: notes the rings if the forking thread was interrupted while it wrote. */
void event_rings_before_fork(unsigned part);

/** Puts a function of event_vfork.c in front of the real syscall(2). Called when seccomp_boot() has found that. */
void event_vfork_begin(void);

#endif
