/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_LEDGER_WRITER_H
#define AGENT_LEDGER_WRITER_H

/*
 * Writes to the ledger: frames, stacks, the ring of recent frees, and cells. A cell has the sums of the samples with
 * one stack, thread, size class and period; cell_sums.h adds to them.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included.
 * Needs: process_open_ledger() has returned true.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agent/thread_state.h"
#include "unwind/walk.h"
#include "wire/ledger.h"

#define WRITER_DEPTH_MAX 128u

/** Adds a period and returns the index of its record; LEDGER_NONE: no room. */
uint32_t writer_add_period(uint64_t period_bytes, uint64_t ticks);
/** Adds the current thread and returns the index of its record; 0 ("other"): the table is full. */
uint16_t writer_add_thread(uint64_t ticks);
/**
 * Walks the stack from `start` and returns its index in the ledger; counts a loss if the walk was cut. LEDGER_NONE: no
 * room.
 */
uint32_t writer_stack(struct thread *t, const struct walk_start *start);
/** Returns the index of the frame whose call returns to pc. LEDGER_NONE: no room. */
uint32_t writer_caller(uintptr_t pc);
/** Moves *at from a frame to its caller's frame; see walk_out(). */
bool writer_walk_out(struct thread *t, struct walk_start *at);
/**
 * Moves *at from a frame to its caller's frame, like writer_walk_out(), but only if the unwind rule of the frame is in
 * the cache. Needs no ledger. False: *at is unchanged; see walk_out_known().
 */
bool writer_walk_out_known(const struct thread *t, struct walk_start *at);
/**
 * Returns the cell of the thread, its period, the size class and the stack from `start`; adds the cell if it is new.
 * LEDGER_NONE: no room.
 */
uint32_t writer_cell(struct thread *t, const struct walk_start *start, uint8_t size_class);

/**
 * Returns the next entry of the shard's ring of frees. The caller fills the entry in and stores *number + 1 last. NULL:
 * no room.
 */
struct ledger_free *writer_next_free(struct ledger_shard *shard, bool mine, uint64_t *number);

/** In a fork child: forgets the records of the parent's ledger. */
void writer_reset(void);
/**
 * Reserves memory for 2,000 stacks and 20,000 live samples, if plenty is free, so that the agent makes no system call
 * before the process has more. Does nothing in a process that is younger than 100 ms and whose samples stand for less
 * than 8 MiB, because this work would slow down short-lived processes (compilers). `bytes`: the bytes that the samples
 * in the thread's shard stand for.
 */
ONE_COPY void writer_take_first_room_cold(uint64_t bytes, uint64_t ticks);
/** Reserves memory for some more records, before seccomp forbids system calls. */
void writer_take_room(void);

#endif
