/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAG_INTERNAL_H
#define TAG_TAG_INTERNAL_H

/*
 * The functions of tag.c for the other files of src/tag: the account of a tag, and the counting of objects.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included. Only tag_realloc() changes errno.
 */

#include <stdbool.h>

#include "allium/tag.h"
#include "target/object_map.h"

#define TAG_EXPORT __attribute__((visibility("default")))

/**
 * Returns the account to charge for a request of this tag: the account of the running helper's call, if there is one.
 * 0: the tag is off, or has no account.
 */
uint32_t tag_account(struct allium_tag *tag);
/** Counts an object as allocated, or as freed. The thread must call tag_account() or tag_ledger_attach() before. */
void tag_allocated(uint32_t account, uint64_t bytes);
void tag_released(uint32_t account, uint64_t bytes);
/** Counts `bytes` of an object as freed, while the rest of the object stays allocated. */
void tag_released_part(uint32_t account, uint64_t bytes);
/** Adds 1 to the loss counters of unseen frees: code without tags has freed an object, and this was noticed late. */
void tag_released_unseen(uint32_t account);
/**
 * Attaches the thread to the ledger of this process. False: the process has no ledger. A fork child has none before its
 * first tagged request.
 */
bool tag_ledger_attach(void);
/** Moves the entry of the object at `p` from the map to *o. False: the map has no such object. */
bool tag_object_take(const void *p, struct object *o);
/** Puts an object back into the map, because the call that would have freed it failed. */
void tag_object_put_back(const void *p, struct object o);
/** Adds a new object to the map, and counts it as allocated. */
void tag_object_add(uint32_t account, const void *object, size_t bytes);
/** Calls realloc(). Charges the new object to `tag`; if `tag` is NULL, to the account of the old object, if any. */
void *tag_realloc(struct allium_tag *tag, void *old, size_t bytes);
/**
 * Ends the request that the same function began by allium_request_begin(): records its duration and stack, if the rules
 * request this. `object`: the new object, of `bytes` bytes; NULL: the request failed. Does not count the object.
 */
void tag_request_ended(struct allium_tag *tag, const void *object, size_t bytes);
/** `all` true: from now on, all requests of the calling thread take slow paths. False: inline code may count again. */
void tag_use_cold_paths(bool all);

#endif
