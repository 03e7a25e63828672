/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_SVG_H
#define VIEW_SVG_H

/*
 * A profile as one picture, for a README or a chat: SVG without scripts, light or dark as the reader's screen is, of at
 * most SVG_BYTES_MAX, and the same bytes each time. Each box has its figures as a title, which browsers show under the
 * pointer.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include "model/profile/call_tree.h"
#include "view/text/sink.h"

#define SVG_BYTES_MAX (100u << 10)

struct svg_options {
    const char *title;
    const struct rollup_options *like; /* which cells and samples count, as in a rollup by stack */
    enum rollup_sort metric;           /* any but the age */
};

/** A flame graph with its root on top. Boxes of less than half a pixel, or more if the file would be too large, are one
 * grey box for each function that called them. */
void svg_flame_write(struct sink *out, const struct profile *p, const struct svg_options *o);
/** A treemap by directory, file and function; by module and function where the source is not known. */
void svg_treemap_write(struct sink *out, const struct profile *p, const struct svg_options *o);
/** Live bytes of all processes over time, with their anonymous resident memory. The metric does not matter. */
void svg_timeline_write(struct sink *out, const struct profile *p, const struct svg_options *o);

#endif
