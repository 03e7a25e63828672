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

/**
 * Adds "profile". `t`: the tree of the profile, made with `like`: which cells and samples count, as in a rollup by
 * stack. With such a filter there are no points in time, which are known for all memory only. `stride`: every how
 * many stored moments are added, see html_moments_add(); 0: none.
 */
void html_profile_add(struct page_blob *b, const struct call_tree *t, const struct profile *p,
                      const struct rollup_options *like, uint32_t stride);

#endif
