/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/units.h"
#include "view/bench/bench_view.h"
#include "view/text/columns.h"

static void add_duration(struct columns *g, const struct text_style *s, double ns)
{
    char text[UNITS_TEXT_BYTES];
    struct buf b = BUF_INIT;
    buf_addstr(&b, isfinite(ns) ? units_format_duration(text, ns) : text_dash(s));
    columns_cell(g, &b);
}

void bench_view_switchings(struct sink *out, const struct bench_switchings *list, const struct text_style *s)
{
    struct columns g = {.style = s};
    if (!list->len)
        return;
    sink_text(out,
              "\nwhat it takes to switch a mechanism on and off, in 1 place of the program and in 1000:\n");
    columns_column(&g, (struct columns_column){"SWITCH", .left = true});
    columns_column(&g, (struct columns_column){"1 ON"});
    columns_column(&g, (struct columns_column){"1 OFF"});
    columns_column(&g, (struct columns_column){"1000 ON"});
    columns_column(&g, (struct columns_column){"1000 OFF"});
    vec_each (const struct bench_switching, it, list) {
        struct buf name = BUF_INIT, below = BUF_INIT;
        columns_row(&g);
        buf_addstr(&name, it->name);
        columns_cell(&g, &name);
        add_duration(&g, s, it->few.on_ns);
        add_duration(&g, s, it->few.off_ns);
        add_duration(&g, s, it->many.on_ns);
        add_duration(&g, s, it->many.off_ns);
        if (it->unavailable)
            buf_printf(&below, "    unavailable: %s\n", it->unavailable);
        columns_below(&g, &below);
    }
    columns_write(&g, out);
    columns_release(&g);
}
