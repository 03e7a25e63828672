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
 * Finds the module at an address that may be stale. False: no module there can be read. dlclose() unmaps a library
 * before the loader forgets the library; if another thread forks in between, the child's loader still lists the
 * library.
 */
bool tag_index_module(const void *at, struct dl_find_object *found);
/** Reserves the table. Called once. If there is no memory for it, each descriptor gets a new account. */
void tag_index_init(void);
/** Returns the third of the three strings at `texts`, the file; NULL: the strings are not all in [start, end). */
const char *tag_index_file(const char *texts, const char *start, const char *end);
/**
 * Returns a hash that identifies a place; never 0. `key`: ledger_action_key() of the place + its line; `path`: of its
 * module; `texts`: class, name and file of the descriptor, or NULL.
 */
uint64_t tag_index_identity(uint64_t key, const char *path, const char *texts);
/**
 * Returns the account of the place, or 0 if the table has none. If it has none, and `number` is not 0, stores `number`
 * as the account of the place, if there is room.
 */
uint32_t tag_index_account(uint64_t identity, uint32_t number);

#endif
