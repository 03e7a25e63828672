/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_HTML_DIFF_H
#define VIEW_HTML_DIFF_H

/*
 * The difference of two profiles as the data of a page: the stacks of both as one tree, and of each metric what is
 * before, after, what grew and what shrank, with everything that the interval of a change needs (profile_diff.h).
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include "model/profile/profile_diff.h"
#include "view/page/page_blob.h"

/** Returns how many nodes the tree of both sides has. Raises their weights, if there are any: call_tree_weigh(). */
uint32_t html_diff_weigh(struct diff *d, double *weights);
/** Adds "profile". `most`: nodes of the tree, by these weights, see call_tree_prune(); 0: all. */
void html_diff_add(struct page_blob *b, struct diff *d, uint32_t most, const double *weights);

#endif
