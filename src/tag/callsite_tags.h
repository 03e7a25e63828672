/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_CALLSITE_TAGS_H
#define TAG_CALLSITE_TAGS_H

/*
 * Tags of calls that have no descriptor where they stand: one for each call instruction, told apart by where it returns
 * to.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Invariant: a tag stays what it is until the image ends.
 */

#include "allium/tag.h"

/**
 * The tag of the call that returns there; `text` (static) as a descriptor's: class, name and file. `entry` is the
 * address of the function that was called, NULL if it is not known: where the call is one of another function, that one
 * has jumped to `entry` as the last thing it did, and is the place. NULL: there is no room.
 */
struct allium_tag *callsite_tag(const void *returns_to, const void *entry, const char *text);

#endif
