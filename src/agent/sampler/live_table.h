/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_LIVE_TABLE_H
#define AGENT_LIVE_TABLE_H

/*
 * The live table: address of a sample -> its record in the ledger. Open addressing in buckets of one cache line,
 * growing without a pause, without a lock.
 *
 * Runs in: target. Threads: any, signal handlers included; a thread stopped anywhere in here stops nobody else.
 * Owns: private anonymous memory. When the entries of a table have moved to a larger one, its
 * address range stays reserved: a slow reader may still look there.
 *
 * An entry is one word: key << 28 | record. The key is a bijection of the address, so it is the address. Truth lies in
 * the record: whoever swaps its address to 0 has taken the sample. Entries whose record says otherwise are leftovers of
 * a race and are removed by whoever meets them; one that is the same as a later sample's entry does no harm.
 *
 * Growth: a table twice the size becomes the newest; every insertion then moves a few buckets of the oldest. A moved
 * entry is first put into the newest and then sealed where it was; an empty slot is sealed at once, so that a late
 * insertion fails there and goes to the newest. Lookups go from the oldest table to the newest. So an entry that is
 * there is found: it is in the newest before it leaves the oldest.
 */

#include <stdbool.h>
#include <stdint.h>

#define LIVE_TABLE_NONE UINT32_MAX

struct ledger_sample;

enum live_table_taken {
    LIVE_TABLE_UNKNOWN,   /* none of ours */
    LIVE_TABLE_TAKEN,     /* ours; the caller owns the record now */
    LIVE_TABLE_INHERITED, /* the parent's: this process has forgotten it now */
};

/**
 * Both functions enter an address with its record. They set `address` in the record; if they return false, it is 0.
 * live_table_insert_new() reads one cache line, and returns false unless that shows that the address is not in the
 * table and that there is room. live_table_insert() returns false only if there is no memory.
 *
 * `address` is set as late as possible. A leftover entry may have the same address and the same record: it would be
 * valid at once, and a caller of live_table_take() that looks for an older sample at the address would take the new
 * one.
 */
bool live_table_insert_new(uintptr_t address, uint32_t record);
bool live_table_insert(uintptr_t address, uint32_t record);
/** Takes an address out: its filter unit is gone and the record's `address` is 0. */
enum live_table_taken live_table_take(uintptr_t address, uint32_t *record);
#define LIVE_TABLE_ROOM_BYTES (512u << 10)
/** Makes a table for some 30,000 entries, of LIVE_TABLE_ROOM_BYTES, unless there is one. */
void live_table_take_room(void);
/** In a fork child: what is in the table is the parent's; begins a table of its own. */
void live_table_disinherit(void);

#endif
