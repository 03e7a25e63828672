/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAG_INTERNAL_H
#define TAG_TAG_INTERNAL_H

/*
 * The functions of tag.c for the other files of src/tag: the account of a tag, and the counting of objects.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included. errno is not changed.
 */

#include <stdbool.h>

#include "allium/tag.h"
#include "target/object_map.h"

#define TAG_EXPORT __attribute__((visibility("default")))

/** Returns the account to charge for a request of this tag; 0: the tag is off, or has no account. */
uint32_t tag_account(struct allium_tag *tag);
/** Counts an object as allocated, or as freed. Call tag_account() or tag_ledger_attach() before. */
void tag_allocated(uint32_t account, uint64_t bytes);
void tag_released(uint32_t account, uint64_t bytes);
/** Counts a part of an object as freed, while the rest stays allocated. */
void tag_released_part(uint32_t account, uint64_t bytes);
/** Counts a free by code without tags, which was noticed too late. */
void tag_released_unseen(uint32_t account);
/**
 * Attaches the thread to the ledger of this process. False: the process has no ledger. A fork child has none before its
 * first tagged request.
 */
bool tag_ledger_attach(void);
/** Takes the object out of the map. False: it has no tag. */
bool tag_object_take(const void *p, struct object *o);
/** Puts an object back into the map, because the call that would have freed it failed. */
void tag_object_put_back(const void *p, struct object o);
/** Enters a new object into the map and counts it. */
void tag_object_add(uint32_t account, const void *object, size_t bytes);
/** Calls realloc(). Charges the new object to `tag`; if `tag` is NULL, to the account of the old object. */
void *tag_realloc(struct allium_tag *tag, void *old, size_t bytes);
/**
 * Ends the request that allium_request_begin() began in the same frame. `object`: the new object, of `bytes` bytes;
 * NULL: the request failed. Does not count the object.
 */
void tag_request_ended(struct allium_tag *tag, const void *object, size_t bytes);
/** `all`: from now on, all requests of the calling thread take the slow paths. False: inline code may count again. */
void tag_use_cold_paths(bool all);

#endif
