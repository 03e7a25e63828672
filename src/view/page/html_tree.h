/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_HTML_TREE_H
#define VIEW_HTML_TREE_H

/*
 * A tree of calls as the data of a page: what pages of a profile and of a diff share.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include "model/profile/call_tree.h"
#include "view/page/page_blob.h"

struct html_rows VEC(uint32_t); /* numbers of rows of a tree, ascending */

/** Adds the strings, frames, nodes and rows of the tree. */
void html_tree_add(struct page_blob *b, const struct call_tree *t);
/** Adds the estimates of a metric for these rows under the key: each member of struct estimate as a column. */
void html_tree_add_estimates(struct page_blob *b, const char *key, const struct call_tree *t,
                             const struct html_rows *rows, enum rollup_metric m, bool count);
/** As above, of all rows, with their values alone: nothing is known of their intervals. */
void html_tree_add_values(struct page_blob *b, const char *key, const struct call_tree *t,
                          enum rollup_metric m, bool count);
/** Adds an estimate and its interval under the key. */
void html_tree_add_total(struct page_blob *b, const char *key, const struct estimate *e);

#endif
