/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_SVG_PARTS_H
#define VIEW_SVG_PARTS_H

/* What the pictures share: their beginning and end, boxes, and colours. */

#include "view/page/svg.h"

#define SVG_WIDTH 1200

/** Writes the beginning, with the title on top; the picture starts at SVG_TOP. */
void svg_begin(struct buf *b, double height, const char *title, const char *note);
#define SVG_TOP 44
void svg_end(struct buf *b);

struct svg_box {
    double x, y, width, height;
    const char *colour; /* its group: boxes of one group have one colour. NULL: grey */
    const char *label;  /* shown as far as there is room; NULL: none */
    const char *title;  /* under the pointer */
};
void svg_add_box(struct buf *b, const struct svg_box *box);

/** The value of the metric, as an estimate: bytes, or objects. */
struct estimate svg_estimate(const struct rollup_values *v, enum rollup_sort metric);
/** Appends "12.3 MiB (11.8–12.9), 34 %" for a title. */
void svg_add_figure(struct buf *b, const struct estimate *e, enum rollup_sort metric, double whole);
/** "live bytes", "allocations" and so on. */
const char *svg_metric_words(enum rollup_sort metric);

#endif
