/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/profile/diff_figures.h"

#include "model/profile/figure_bounds.h"
#include "view/profile/common.h"

void diff_figures_mark(struct buf *b, const struct diff *d, enum rollup_metric m)
{
    common_mark(b, figure_bounds_of_side(d, PROFILE_PAIR_BEFORE, m) ||
                       figure_bounds_of_side(d, PROFILE_PAIR_AFTER, m));
}

void diff_figures_side(struct buf *b, const struct diff *d, enum rollup_metric m, const struct diff_value *v,
                       enum diff_part part, bool count)
{
    common_mark(b,
                figure_bounds_of_side(d, part == DIFF_BEFORE ? PROFILE_PAIR_BEFORE : PROFILE_PAIR_AFTER, m));
    text_add_value(b, count ? &v->of[part].count : &v->of[part].bytes, count ? TEXT_COUNT : TEXT_BYTES);
}

void diff_figures_change(struct buf *b, const struct diff *d, enum rollup_metric m,
                         const struct diff_change *c, bool count)
{
    const enum text_unit unit = count ? TEXT_COUNT : TEXT_BYTES;
    if (c->interval.low == 0 && c->interval.high == 0) {
        diff_figures_mark(b, d, m);
        buf_addstr(b, "no change");
        return;
    }
    buf_addstr(b, diff_is_noise(c) ? "within noise: " : "");
    diff_figures_mark(b, d, m);
    text_add_change(b, c->value, unit);
    if (c->interval.low == c->interval.high)
        return;
    buf_addstr(b, " (");
    text_add_change_interval(b, c->interval.low, c->interval.high, unit);
    buf_addch(b, ')');
}
