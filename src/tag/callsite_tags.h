/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_CALLSITE_TAGS_H
#define TAG_CALLSITE_TAGS_H

/* Tags for calls that have no descriptor in their code: one for each call instruction, found by its return address.
 *
 * The hash table of these tags is not in the ledger, because a fork child inherits the tags, but not the ledger.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Invariant: a tag belongs to the same call until the image ends. */

#include "allium/tag.h"

/**
 * Returns the tag of the call with this return address. `text` (static): class, name and file, as in a descriptor.
 * `entry`: the function that was called, or NULL. If the call instruction calls another function, that function has
 * made a tail call to `entry`; then that function is the place of the tag. Returns NULL if there is no room.
 */
struct allium_tag *callsite_tag(const void *returns_to, const void *entry, const char *text);

#endif
