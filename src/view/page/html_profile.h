/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_HTML_PROFILE_H
#define VIEW_HTML_PROFILE_H

/*
 * A profile as the data of a page: its stacks as a tree, with everything that estimate_interval() needs for any of its
 * parts, so that the page can give each selection its interval; and its points in time.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include "model/profile/call_tree.h"
#include "view/page/page_blob.h"

/** Returns whether the process has ended, so that it has no memory after its `taken_ns`. */
bool html_profile_image_ended(const struct profile_image *i);

/**
 * `like`: which cells and samples count, as in a rollup by stack. With such a filter there are no points in time,
 * which are known for all memory only. `most`: nodes of the tree of calls, see call_tree_prune(); 0: all. Returns how
 * many nodes the tree had before.
 */
uint32_t html_profile_add(struct page_blob *b, const struct profile *p, const struct rollup_options *like,
                          uint32_t most);

#endif
