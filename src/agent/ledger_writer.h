/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_LEDGER_WRITER_H
#define AGENT_LEDGER_WRITER_H

/*
 * Keeping the books in the ledger: names of frames, stacks, cells, the ring of frees. What is added up in the cells is in
 * cell_sums.h.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included.
 * Needs: process_open_ledger() said true.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agent/thread_state.h"
#include "unwind/walk.h"
#include "wire/ledger.h"

#define WRITER_DEPTH_MAX 128u

/** Index of a copy of the text in the strings, 0 ("") when there is no room. */
uint32_t writer_add_string(const char *text);
/** Index of a new record; LEDGER_NONE when there is no room. */
uint32_t writer_add_period(uint64_t period_bytes, uint64_t ticks);
/** Record of the current thread, 0 ("other") beyond the table's end. */
uint16_t writer_add_thread(uint64_t ticks);
/** Walks from `start` and books the stack, counting what was cut. LEDGER_NONE: no room. */
uint32_t writer_stack(struct thread *t, const struct walk_start *start);
/** Frame of the call that returns to pc, alone. LEDGER_NONE: no room. */
uint32_t writer_caller(uintptr_t pc);
/** From a frame to its caller's; see walk_out(). */
bool writer_walk_out(struct thread *t, struct walk_start *at);
/** See walk_out_known(); it needs no books. */
bool writer_walk_out_known(const struct thread *t, struct walk_start *at);
/** The thread's cell, at its period, for this size class and the stack from `start`; LEDGER_NONE: no room. */
uint32_t writer_cell(struct thread *t, const struct walk_start *start, uint8_t size_class);

/** Where the next free is remembered: to be filled in, `number` + 1 last. NULL: no room. */
struct ledger_free *writer_next_free(struct ledger_shard *shard, bool mine, uint64_t *number);

/** In a fork child: begins with nothing. */
void writer_reset(void);
/** Before system calls become impossible: backs room for some more records. */
void writer_take_room(void);

#endif
