/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_BOOKS_H
#define AGENT_BOOKS_H

/*
 * Keeping the books in the ledger: names of frames, stacks, cells and their sums, the ring of frees.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included.
 * Needs: process_open_ledger() said true.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/draw.h"
#include "unwind/walk.h"
#include "wire/ledger.h"

#define BOOKS_DEPTH_MAX 128u

/** Index of a copy of the text in the strings, 0 ("") when there is no room. */
uint32_t books_add_string(const char *text);
/** Index of a new record; LEDGER_NONE when there is no room. */
uint32_t books_add_period(uint64_t period_bytes, uint64_t ticks);
/** Record of the current thread, 0 ("other") beyond the table's end. */
uint16_t books_add_thread(uint64_t ticks);
/** Walks from `start` and books the stack, counting what was cut. LEDGER_NONE: no room. */
uint32_t books_stack(struct stack_bounds *bounds, const struct walk_start *start);
/** Frame of the call that returns to pc, alone. LEDGER_NONE: no room. */
uint32_t books_caller(uintptr_t pc);
/** The cell for these; LEDGER_NONE: no room. */
uint32_t books_cell(uint32_t stack, uint16_t thread, uint8_t size_class, uint8_t period);

/** `shard` is the current thread's. One sample more, or one less, in a cell and in the totals, with the peak kept up to date. */
void books_allocated(struct ledger_shard *shard, uint32_t cell, uint64_t size, struct draw_weight w,
                     uint64_t ticks);
void books_freed(struct ledger_shard *shard, uint32_t cell, uint64_t size, struct draw_weight w,
                 uint64_t age_ticks, bool temporary);
/** What was allocated but cannot be followed: it goes to `freed` too, so that what is live is what is followed. */
void books_not_followed(struct ledger_shard *shard, uint32_t cell, uint64_t size, struct draw_weight w);

/** A vacant sample record; LEDGER_NONE: no room. */
uint32_t books_sample_new(struct ledger_shard *shard);
void books_sample_free(struct ledger_shard *shard, uint32_t record);
/** Remembers a free; `f->number` is filled in. */
void books_remember_free(struct ledger_shard *shard, const struct ledger_free *f);

/** In a fork child: begins with nothing. */
void books_reset(void);
/** Before system calls become impossible: backs room for some more records. */
void books_take_room(void);

#endif
