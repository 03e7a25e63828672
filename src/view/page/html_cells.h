/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_HTML_CELLS_H
#define VIEW_HTML_CELLS_H

/*
 * The cells of a profile as the data of a page, which makes the estimates of all metrics of them, as
 * profile_estimate() does; and the same sums at stored moments, so that the page can show the profile as `FILE@TIME`
 * does.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include "model/profile/call_tree.h"
#include "view/page/page_blob.h"

/** Adds "cells": those in rows of the tree, in the order of the rows; those of a [rest] are left out. */
void html_cells_add(struct page_blob *b, const struct call_tree *t, const struct profile *p);

/**
 * Adds "moments": every stride-th stored moment of the profile, with the interval of what was live, and the cells
 * that have changed, by their numbers in "cells".
 */
void html_moments_add(struct page_blob *b, const struct call_tree *t, const struct profile *p,
                      uint32_t stride);

#endif
