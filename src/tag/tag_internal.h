/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAG_INTERNAL_H
#define TAG_TAG_INTERNAL_H

/*
 * What tag.c has for the other files of this room: accounts of tags, objects that come and go.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included. errno stays what it was.
 */

#include <stdbool.h>

#include "allium/tag.h"
#include "target/object_map.h"

#define TAG_EXPORT __attribute__((visibility("default")))

/** The account that a request of this tag is charged to; 0: it is off, or cannot be kept. */
uint32_t tag_account(struct allium_tag *tag);
/** One more object of so many bytes, or one less. Only after tag_account() or tag_ledger_attach(). */
void tag_allocated(uint32_t account, uint64_t bytes);
void tag_released(uint32_t account, uint64_t bytes);
/** A part of an object is gone, and the object is still there. */
void tag_released_part(uint32_t account, uint64_t bytes);
/** An object, or a part of one, that code without tags gave back. */
void tag_released_unseen(uint32_t account);
/** The books are open and this process's own: a fork child's are not before its first tagged request. */
bool tag_ledger_attach(void);
/** The object, out of the map; false: it is not ours. */
bool tag_object_take(const void *p, struct object *o);
/** The other way round: it is still there. */
void tag_object_put_back(const void *p, struct object o);
/** An object of that account is there. */
void tag_object_add(uint32_t account, const void *object, size_t bytes);
/** realloc(); the new object is charged to `tag`, or with NULL to whom the old one was. */
void *tag_realloc(struct allium_tag *tag, void *old, size_t bytes);
/**
 * What allium_request_begin() began is done, and came to that, or to NULL; it is counted by whoever calls, with the
 * same frame.
 */
void tag_request_ended(struct allium_tag *tag, const void *what, size_t bytes);
/** All of the calling thread's requests shall come by the cold halves from now on, or no longer. */
void tag_use_cold_paths(bool all);

#endif
