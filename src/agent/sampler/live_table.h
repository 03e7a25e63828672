/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_LIVE_TABLE_H
#define AGENT_LIVE_TABLE_H

/*
 * The live table maps the address of each live sample to its record in the ledger. It is a hash table with open
 * addressing in buckets of one cache line, which grows without a pause and without a lock.
 *
 * Runs in: target. Threads: any, signal handlers included; a thread that is stopped here delays no other thread.
 * Owns: private anonymous memory. When the entries of a table have moved to a larger one, the address range of the old
 * table stays reserved, because a slow reader may still read there.
 *
 * An entry is one word: the low 36 bits of the key, then the index of the record + 1. The key is a bijection of the
 * address. The `address` in the record decides: the thread that replaces it by 0 has removed the sample. An entry whose
 * record has another address is left over from a race, and any thread that finds this entry removes it. A left-over
 * entry that equals the entry of a later sample does no harm.
 *
 * Growth: a table of twice the size becomes the newest. Each live_table_insert() then moves a few buckets of the oldest
 * table: it copies an entry to the newest table, and then seals the old slot. It also seals empty slots, so that a late
 * insertion fails there and goes to the newest table. A lookup goes from the oldest table to the newest, and finds an
 * entry that is being moved, because the entry is in the newest table before it leaves the oldest.
 */

#include <stdbool.h>
#include <stdint.h>

#define LIVE_TABLE_NONE UINT32_MAX

struct ledger_sample;

enum live_table_taken {
    LIVE_TABLE_UNKNOWN,   /* the address is not that of a sample */
    LIVE_TABLE_TAKEN,     /* a sample; the caller owns its record now */
    LIVE_TABLE_INHERITED, /* a sample of a fork parent; its entry was removed */
};

/**
 * Both functions add an address with the index of its record, and set `address` in the record; if they return false,
 * `address` is 0. live_table_insert_new() is the fast one: it reads one cache line. It returns false while the table
 * grows, if the line has no room, and if the address may be in the table already, in this line or another one. Both
 * return false if there is no memory, live_filter_reach() fails, or `record` is too large.
 *
 * Both set `address` just before they add the entry. The table may still have a left-over entry with the same address
 * and record, which readers ignore while `address` in the record differs. Once `address` is set, they take that entry
 * for a valid one, too: a thread that calls live_table_take() for an older sample at this address would get the new
 * one.
 */
bool live_table_insert_new(uintptr_t address, uint32_t record);
bool live_table_insert(uintptr_t address, uint32_t record);
/**
 * Removes an address from the table and from the live filter. LIVE_TABLE_TAKEN: `address` in its record is 0 now, and
 * *record is the index of the record. Otherwise *record is unchanged.
 */
enum live_table_taken live_table_take(uintptr_t address, uint32_t *record);
#define LIVE_TABLE_ROOM_BYTES (512u << 10)
/** Makes a table of LIVE_TABLE_ROOM_BYTES (some 30,000 entries), unless the newest table is at least as large. */
void live_table_take_room(void);
/** In a fork child: marks all tables as inherited. The first insertion makes a new table. */
void live_table_disinherit(void);

#endif
