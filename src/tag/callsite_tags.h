/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_CALLSITE_TAGS_H
#define TAG_CALLSITE_TAGS_H

/* Tags for calls that have no descriptor in their code: one tag for each call instruction, found by the return address.
 *
 * The hash table of these tags is not in the ledger, because a fork child inherits the tags, but not the ledger.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Invariant: a tag belongs to the same call instruction until the image ends. */

#include "allium/tag.h"

/**
 * Returns the tag of the call with this return address; adds a tag if the call has none. `text`: class, name and file
 * of a new tag, three consecutive strings, which must stay valid. `entry`: the function that runs now, or NULL. If the
 * call instruction calls another function, that function has made a tail call to `entry`: then the place of the tag is
 * that function instead of the call instruction. Returns NULL if there is no room, or if the return address is outside
 * every module.
 */
struct allium_tag *callsite_tag(const void *returns_to, const void *entry, const char *text);

#endif
