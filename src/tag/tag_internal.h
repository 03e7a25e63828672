/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAG_INTERNAL_H
#define TAG_TAG_INTERNAL_H

/*
 * The functions of tag.c for the other files of this room: accounts of tags, and objects that are allocated and
 * freed.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included. errno is not changed.
 */

#include <stdbool.h>

#include "allium/tag.h"
#include "target/object_map.h"

#define TAG_EXPORT __attribute__((visibility("default")))

/** Returns the account that a request of this tag is charged to; 0: the tag is off, or has no account. */
uint32_t tag_account(struct allium_tag *tag);
/** Counts an object as allocated, or as freed. Only after tag_account() or tag_ledger_attach(). */
void tag_allocated(uint32_t account, uint64_t bytes);
void tag_released(uint32_t account, uint64_t bytes);
/** Counts a part of an object as freed; the rest is still there. */
void tag_released_part(uint32_t account, uint64_t bytes);
/** Counts an object, or a part of one, that code without tags has freed. */
void tag_released_unseen(uint32_t account);
/**
 * Attaches the thread to the ledger of this process. False: there is none; a fork child has none before its first
 * tagged request.
 */
bool tag_ledger_attach(void);
/** Takes the object out of the map. False: it has no tag. */
bool tag_object_take(const void *p, struct object *o);
/** Puts an object that was not freed after all back into the map. */
void tag_object_put_back(const void *p, struct object o);
/** Enters a new object into the map and counts it. */
void tag_object_add(uint32_t account, const void *object, size_t bytes);
/** Calls realloc(). The new object is charged to `tag`; if that is NULL, to the account of the old object. */
void *tag_realloc(struct allium_tag *tag, void *old, size_t bytes);
/**
 * Ends the request that allium_request_begin() began in the same frame. `what` is the object of `bytes` bytes that it
 * returned; NULL: it failed. Does not count the object: the caller does.
 */
void tag_request_ended(struct allium_tag *tag, const void *what, size_t bytes);
/** Sends all requests of the calling thread to the cold paths, or no longer. */
void tag_use_cold_paths(bool all);

#endif
