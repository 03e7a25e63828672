/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAG_INDEX_H
#define TAG_TAG_INDEX_H

/*
 * Finds the account of a place in the source, whichever descriptor it has now. A library that is loaded again brings
 * new descriptors: without this index, a program that loads plugins again and again would get ever more accounts.
 *
 * The table is a hash table of its own, because it outlives the ledger: a fork child inherits it.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 */

#include <stdbool.h>
#include <stdint.h>

struct dl_find_object;

/**
 * Finds the module at an address that may be stale. False: there is none. While another thread closes a library, the
 * library is unmapped before the loader forgets it; a fork child may stay in that state.
 */
bool tag_index_module(const void *at, struct dl_find_object *found);
/** Reserves the table. Called once. Without memory, each descriptor is a place of its own. */
void tag_index_init(void);
/**
 * Returns the file of a descriptor, the third of its texts; NULL: the texts are not all between `start` and `end`.
 */
const char *tag_index_file(const char *texts, const char *start, const char *end);
/**
 * Returns a hash that identifies a place: of ledger_action_key() plus line, the path of the module, and the texts of
 * the descriptor (NULL: none). Never 0.
 */
uint64_t tag_index_identity(uint64_t key, const char *path, const char *texts);
/**
 * Returns the account of the place. 0: it has none yet; then `number`, unless it is 0, becomes its account if there
 * is room.
 */
uint32_t tag_index_account(uint64_t identity, uint32_t number);

#endif
