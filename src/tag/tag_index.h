/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAG_INDEX_H
#define TAG_TAG_INDEX_H

/*
 * Which account a place has, whatever descriptor it has now: a library that is loaded again brings new ones, and a
 * program that loads plugins for ever would have ever more accounts.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock. A fork child goes on with what its
 * parent knew.
 */

#include <stdbool.h>
#include <stdint.h>

struct dl_find_object;

/**
 * The module that has what lies there, whose use of it nobody vouches for. While another thread closes a library it is
 * unmapped before the loader forgets it: a fork child may be left with that for good.
 */
bool tag_index_module(const void *at, struct dl_find_object *found);
/** Takes the room; once. Without any, each descriptor is a place of its own. */
void tag_index_init(void);
/** A descriptor's file, the third of its texts; NULL: texts or file do not lie between these, or have no end there. */
const char *tag_index_file(const char *texts, const char *start, const char *end);
/**
 * What tells a place: ledger_action_key() and line of it, the path of its module, and the texts of its descriptor
 * (NULL: none). Never 0.
 */
uint64_t tag_index_identity(uint64_t key, const char *path, const char *texts);
/** The account of that place, 0: none yet; then `number` is it from now on, unless that is 0 or there is no room. */
uint32_t tag_index_account(uint64_t identity, uint32_t number);

#endif
