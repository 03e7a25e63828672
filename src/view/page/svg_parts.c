/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/svg_parts.h"

#include <stdint.h>
#include <string.h>

#include "view/page/html.h"
#include "view/text/text.h"

#define COLOURS        12
#define CHAR_WIDTH     6.7 /* pixels, of the font in svg_begin() */
#define MARGIN         4   /* on both sides of a label */
#define TITLE_LINE_MAX 160 /* bytes of a name under the pointer */
#define LOWEST         12  /* pixels: a box that is lower has no label */

static const struct text_style utf8 = {.utf8 = true};

void svg_begin(struct buf *b, double height, const char *title, const char *note)
{
    buf_printf(b,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" font-family=\"ui-monospace,"
               "'DejaVu Sans Mono',monospace\" font-size=\"11\">\n<title>",
               SVG_WIDTH, height);
    html_add_text(b, title);
    buf_addstr(
        b, "</title>\n<style>.b{fill:#fff}text{fill:#1b1f24}.g{fill:#d5d9df}.l{stroke:#1d4ed8;fill:none}"
           ".f{stroke:#5c6672;fill:none}.a{fill:#1d4ed8;opacity:.12}.r{stroke:#d5d9df}.t rect{stroke:#fff}");
    for (int i = 0; i < COLOURS; i++)
        buf_printf(b, ".c%d{fill:hsl(%d,58%%,80%%)}", i, i * 360 / COLOURS);
    buf_addstr(
        b, "\n@media(prefers-color-scheme:dark){.b{fill:#16181c}text{fill:#e8eaed}.g{fill:#3a4049}"
           ".l{stroke:#7fb0ff}.f{stroke:#a2abb6}.a{fill:#7fb0ff}.r{stroke:#3a4049}.t rect{stroke:#16181c}");
    for (int i = 0; i < COLOURS; i++)
        buf_printf(b, ".c%d{fill:hsl(%d,38%%,32%%)}", i, i * 360 / COLOURS);
    buf_printf(b,
               "}</style>\n<rect class=\"b\" width=\"%d\" height=\"%.0f\"/>\n<text x=\"8\" y=\"17\" "
               "font-size=\"14\" font-weight=\"bold\">",
               SVG_WIDTH, height);
    html_add_text(b, title);
    buf_addstr(b, "</text>\n<text x=\"8\" y=\"34\">");
    html_add_text(b, note);
    buf_addstr(b, "</text>\n");
}

void svg_end(struct buf *b)
{
    buf_addstr(b, "</svg>\n");
}

static unsigned colour_of(const char *group)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *at = group; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    return (hash ^ hash >> 15) % COLOURS;
}

/* As much of a name as fits, with dots for the rest; nothing if that is less than three characters. */
static void add_label(struct buf *b, const struct svg_box *box)
{
    struct buf name = BUF_INIT, clean = BUF_INIT;
    const double room = (box->width - 2 * MARGIN) / CHAR_WIDTH;
    text_add_name(&name, &utf8, box->label);
    if (room >= (double)text_width(buf_str(&name))) {
        html_add_text(&clean, buf_str(&name));
    } else if (room >= 3) {
        name.data[text_bytes(buf_str(&name), (size_t)room - 1)] = '\0';
        html_add_text(&clean, buf_str(&name));
        buf_addstr(&clean, "…");
    }
    if (clean.len)
        buf_printf(b, "<text x=\"%.1f\" y=\"%.1f\">%s</text>", box->x + MARGIN,
                   box->y + (box->height < 18 ? box->height / 2 + 4 : 12.5), buf_str(&clean));
    buf_release(&name);
    buf_release(&clean);
}

/* Names in C++ may have thousands of characters. */
static void add_title(struct buf *b, const char *title)
{
    for (const char *line = title; *line; line += *line == '\n') {
        struct buf clean = BUF_INIT;
        const size_t len = strcspn(line, "\n"), shown = len > TITLE_LINE_MAX ? TITLE_LINE_MAX : len;
        buf_add(&clean, line, shown);
        html_add_text(b, buf_str(&clean));
        buf_printf(b, "%s%s", shown < len ? "…" : "", line[len] ? "\n" : "");
        buf_release(&clean);
        line += len;
    }
}

void svg_add_box(struct buf *b, const struct svg_box *box)
{
    if (box->colour)
        buf_printf(b, "<g class=\"c%u\">", colour_of(box->colour));
    else
        buf_addstr(b, "<g class=\"g\">");
    buf_addstr(b, "<title>");
    add_title(b, box->title);
    const double gap = box->width > 3 ? 0.7 : 0;
    buf_printf(b, "</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", box->x, box->y,
               box->width - gap > 0.2 ? box->width - gap : 0.2,
               box->height > 3 ? box->height - 1 : box->height);
    if (box->label && box->height >= LOWEST)
        add_label(b, box);
    buf_addstr(b, "</g>\n");
}

struct estimate svg_estimate(const struct rollup_values *v, enum rollup_sort metric)
{
    const struct rollup_value value = rollup_value_of(v, rollup_sort_metric(metric));
    return metric == ROLLUP_SORT_ALLOCATIONS ? value.count : value.bytes;
}

void svg_add_figure(struct buf *b, const struct estimate *e, enum rollup_sort metric, double whole)
{
    text_add_figure(b, &utf8, e, metric == ROLLUP_SORT_ALLOCATIONS ? TEXT_COUNT : TEXT_BYTES);
    if (whole > 0) {
        buf_addstr(b, ", ");
        text_add_share(b, e->value, whole);
    }
}

const char *svg_metric_words(enum rollup_sort metric)
{
    static const char *const words[] = {
        [ROLLUP_SORT_LIVE] = "live bytes",           [ROLLUP_SORT_PEAK] = "bytes at the peak",
        [ROLLUP_SORT_ALLOCATED] = "allocated bytes", [ROLLUP_SORT_ALLOCATIONS] = "allocations",
        [ROLLUP_SORT_TEMPORARY] = "temporary bytes", [ROLLUP_SORT_REQUESTED] = "requested bytes",
        [ROLLUP_SORT_SLACK] = "slack bytes",
    };
    return words[metric];
}
