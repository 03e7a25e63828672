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

/** `like`: which cells and samples count, as in a rollup by stack. */
void html_profile_add(struct page_blob *b, const struct profile *p, const struct rollup_options *like);

#endif
