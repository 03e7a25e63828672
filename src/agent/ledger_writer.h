/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_LEDGER_WRITER_H
#define AGENT_LEDGER_WRITER_H

/*
 * Adds periods, threads, frames, stacks and cells to the ledger, and assigns entries of the rings of recent frees. A
 * cell has the sums of the samples with one stack, thread, size class and period; cell_sums.h adds to these sums.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included.
 * Needs: the ledger of this process, except for writer_walk_out_known() and writer_reset().
 */

#include <stdbool.h>
#include <stdint.h>

#include "agent/thread_state.h"
#include "target/ledger_stacks.h"
#include "unwind/module.h"
#include "unwind/walk.h"
#include "wire/ledger.h"

#define WRITER_DEPTH_MAX 128u

/** Adds a sampling period that begins at `ticks`, and returns the index of its record. LEDGER_NONE: no room. */
uint32_t writer_add_period(uint64_t period_bytes, uint64_t ticks);
/**
 * Adds the current thread, which first allocates or frees a sample at `ticks`, and returns the index of its record. 0,
 * the index of the record "other": no room.
 */
uint16_t writer_add_thread(uint64_t ticks);
/**
 * Walks the stack from `start`, adds it to the ledger if it is new, and returns the index of its record. If the walk
 * did not reach the outermost frame, counts a loss. LEDGER_NONE: no room.
 */
uint32_t writer_stack(struct thread *t, const struct walk_start *start);
/**
 * The same, faster if it is called for each allocation: finds a stack by its hash of 64 bits (see known_key()), without
 * reading the ledger.
 */
uint32_t writer_stack_of_each(struct thread *t, const struct walk_start *start);
extern struct ledger_stacks writer_stacks __attribute__((visibility("hidden")));
/** Returns the index of the frame with the return address `pc`; adds the frame if it is new. LEDGER_NONE: no room. */
static inline uint32_t writer_caller(uintptr_t pc)
{
    return ledger_stacks_name_frame(&writer_stacks, module_find(pc - 1), pc, false);
}
/** The same, faster if it is called for each free: keeps the frame with the unwind rule that a walk needs there. */
uint32_t writer_caller_of_each(uintptr_t pc);
/** Moves *at from a frame to the frame of its caller. False: this is not possible; see walk_out(). */
bool writer_walk_out(struct thread *t, struct walk_start *at);
/**
 * Moves *at from a frame to the frame of its caller, like writer_walk_out(), but without a ledger: uses only an unwind
 * rule that is cached. False: this is not possible, and *at is unchanged; see walk_out_known().
 */
bool writer_walk_out_known(const struct thread *t, struct walk_start *at);
/**
 * Walks the stack from `start`, and returns the index of the cell of this stack, the thread, the thread's period and
 * the size class; adds the cell if it is new. If there is no room for the cell, returns the cell of thread 0, "other".
 * LEDGER_NONE: no room for the stack, or no such cell.
 */
uint32_t writer_cell(struct thread *t, const struct walk_start *start, uint8_t size_class);

/**
 * Returns the next entry of the shard's ring of frees, and stores the number of this free in *number. The caller fills
 * the entry in, and stores *number + 1 in its `number` last. `mine`: no other thread writes to the shard's counters.
 * NULL: no room.
 */
struct ledger_free *writer_next_free(struct ledger_shard *shard, bool mine, uint64_t *number);

/** In a fork child, before it makes a ledger: forgets the indices of records in the parent's ledger. */
void writer_reset(void);
/**
 * Takes room for some 2,000 stacks and 20,000 live samples in advance, if there is plenty of free memory: until they
 * are used up, their tables grow without a system call. Does this once, and not while the process is younger than some
 * 100 ms and `bytes` is less than 8 MiB, because it would slow down short-lived processes (compilers).
 *
 * `bytes`: estimate of all bytes that the threads of the shard have allocated. `ticks`: the present time.
 */
ONE_COPY void writer_take_first_room_cold(uint64_t bytes, uint64_t ticks);
/** Before the process enters seccomp: takes room for further records in advance, because tables cannot grow later. */
void writer_take_room(void);

#endif
