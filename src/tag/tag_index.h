/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAG_INDEX_H
#define TAG_TAG_INDEX_H

/*
 * Finds the account of a place in the source by a hash of its file, line and names. A library that is loaded again has
 * new descriptors for the same places: without this index, a program that keeps loading and unloading plugins would get
 * ever more accounts.
 *
 * The table is not in the ledger, because a fork child inherits the table, but not the ledger.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 */

#include <stdbool.h>
#include <stdint.h>

struct dl_find_object;

/**
 * Finds the module at an address that may be stale, and checks that it can be read: dlclose() unmaps a library before
 * the loader forgets it, and if another thread forks in between, its child stays in this state. False: no module there.
 */
bool tag_index_module(const void *at, struct dl_find_object *found);
/** Reserves the table. Called once. If there is no memory, each descriptor gets a new account. */
void tag_index_init(void);
/** Returns the third of a descriptor's texts, the file; NULL: the texts are not all between `start` and `end`. */
const char *tag_index_file(const char *texts, const char *start, const char *end);
/**
 * Returns a hash that identifies a place; never 0. `key`: ledger_action_key() + line; `path`: of the module; `texts`:
 * of the descriptor, or NULL.
 */
uint64_t tag_index_identity(uint64_t key, const char *path, const char *texts);
/**
 * Returns the account of the place, or 0 if it has none. In that case stores `number`, unless it is 0, as the account
 * of the place, if there is room.
 */
uint32_t tag_index_account(uint64_t identity, uint32_t number);

#endif
