/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/svg_parts.h"

#include <stdlib.h>

#include "view/text/text.h"

#define ROW       18.0 /* pixels */
#define NARROWEST 0.5
#define DEEPEST   250  /* rows: what is below is left out, and said */
#define WIDEST    32.0 /* pixels: if boxes as wide as this are still too many, rows are left out */
#define WIDENED   1.5  /* if the picture is too large: how much wider boxes must be in the next one */

struct drawing {
    const struct call_tree *tree;
    const struct svg_options *o;
    double *values; /* by node, with those below it */
    double scale, narrowest;
    uint32_t deepest; /* rows that are drawn */
    struct buf boxes;
    uint32_t depth; /* of the lowest box */
    bool cut;
};

static void add_up(struct drawing *d)
{
    const struct call_tree *t = d->tree;
    d->values = mem_array(t->nodes.len, sizeof(*d->values));
    vec_each (const struct call_tree_row, row, &t->rows)
        d->values[row->at.node] += svg_estimate(row->values, d->o->metric).value;
    for (size_t i = t->nodes.len; i-- > 1;)
        d->values[t->nodes.at[i].parent] += d->values[i];
}

/* The first row at this node or behind it. */
static size_t first_row(const struct call_tree *t, uint32_t node)
{
    size_t low = 0, high = t->rows.len;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (t->rows.at[middle].at.node < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct estimate estimate_below(const struct drawing *d, uint32_t node)
{
    const struct call_tree *t = d->tree;
    struct estimate e = {0};
    for (size_t i = first_row(t, node); i < t->rows.len && t->rows.at[i].at.node < t->nodes.at[node].end;
         i++) {
        const struct estimate of_row = svg_estimate(t->rows.at[i].values, d->o->metric);
        estimate_merge(&e, &of_row);
    }
    return e;
}

static void add_place(struct buf *b, const struct call_tree *t, const struct call_tree_node *n)
{
    const struct call_tree_frame *f = &t->frames.at[n->frame];
    if (f->file)
        buf_printf(b, "\n%s", call_tree_text(t, f->file));
    if (f->file && n->line)
        buf_printf(b, ":%u", n->line);
    if (!f->file && f->module)
        buf_printf(b, "\n%s", call_tree_text(t, f->module));
}

static void draw_node(struct drawing *d, uint32_t node, double x, uint32_t depth)
{
    const struct call_tree *t = d->tree;
    const struct call_tree_node *n = &t->nodes.at[node];
    const struct call_tree_frame *f = node ? &t->frames.at[n->frame] : NULL;
    const char *name = f ? call_tree_text(t, f->function) : "all";
    const struct estimate e = estimate_below(d, node);
    struct buf title = BUF_INIT;
    buf_printf(&title, "%s\n", name);
    svg_add_figure(&title, &e, d->o->metric, d->values[0]);
    if (f)
        add_place(&title, t, n);
    const char *group = !f || f->kind == CALL_TREE_PROCESS ? NULL : call_tree_text(t, f->module);
    svg_add_box(&d->boxes, &(struct svg_box){.x = x,
                                             .y = SVG_TOP + depth * ROW,
                                             .width = d->values[node] * d->scale,
                                             .height = ROW,
                                             .colour = group,
                                             .label = name,
                                             .title = buf_str(&title)});
    d->depth = depth > d->depth ? depth : d->depth;
    buf_release(&title);
}

static void draw_rest(struct drawing *d, double value, uint32_t n, double x, uint32_t depth)
{
    struct buf title = BUF_INIT;
    text_add_words(&title, n, "call{s} too small to draw");
    buf_printf(&title, "\n");
    svg_add_figure(&title, &(struct estimate){.samples = 1, .exact = 1, .value = value, .seen = value},
                   d->o->metric, d->values[0]);
    svg_add_box(&d->boxes, &(struct svg_box){.x = x,
                                             .y = SVG_TOP + depth * ROW,
                                             .width = value * d->scale,
                                             .height = ROW,
                                             .title = buf_str(&title)});
    buf_release(&title);
}

struct child {
    uint32_t node;
    double value;
};

static int largest_first(const void *a, const void *b)
{
    const struct child *x = a, *y = b;
    if (x->value < y->value || x->value > y->value)
        return x->value < y->value ? 1 : -1;
    return (x->node > y->node) - (x->node < y->node);
}

static void draw_children(struct drawing *d, uint32_t node, double x, uint32_t depth)
{
    const struct call_tree *t = d->tree;
    struct VEC(struct child) children = {0};
    double rest = 0;
    uint32_t n_rest = 0;
    if (depth > d->deepest) {
        d->cut = true;
        return;
    }
    for (uint32_t i = node + 1; i < t->nodes.at[node].end; i = t->nodes.at[i].end)
        if (d->values[i] > 0)
            *vec_push(&children) = (struct child){i, d->values[i]};
    if (children.len)
        qsort(children.at, children.len, sizeof(*children.at), largest_first);
    vec_each (const struct child, c, &children) {
        if (c->value * d->scale < d->narrowest) {
            rest += c->value;
            n_rest++;
            continue;
        }
        draw_node(d, c->node, x, depth);
        draw_children(d, c->node, x, depth + 1);
        x += c->value * d->scale;
    }
    if (rest * d->scale >= d->narrowest)
        draw_rest(d, rest, n_rest, x, depth);
    vec_release(&children);
}

static void draw(struct drawing *d)
{
    buf_reset(&d->boxes);
    d->depth = 0;
    d->cut = false;
    d->scale = d->values[0] > 0 ? SVG_WIDTH / d->values[0] : 0;
    if (!(d->values[0] > 0))
        return;
    draw_node(d, 0, 0, 0);
    draw_children(d, 0, 0, 1);
}

void svg_flame_write(struct sink *out, const struct profile *p, const struct svg_options *o)
{
    struct call_tree *tree = call_tree_new(p, o->like);
    struct drawing d = {.tree = tree, .o = o, .narrowest = NARROWEST, .deepest = DEEPEST};
    struct buf whole = BUF_INIT, note = BUF_INIT;
    add_up(&d);
    for (;;) {
        draw(&d);
        buf_reset(&whole);
        buf_reset(&note);
        buf_printf(&note, "%s by function, callers above", svg_metric_words(o->metric));
        if (d.cut)
            buf_printf(&note, "; calls below row %u are not drawn", d.deepest);
        svg_begin(&whole, SVG_TOP + ROW * (d.depth + 1), o->title, buf_str(&note));
        buf_add(&whole, buf_str(&d.boxes), d.boxes.len);
        svg_end(&whole);
        if (whole.len <= SVG_BYTES_MAX || !d.deepest)
            break;
        if (d.narrowest < WIDEST)
            d.narrowest *= WIDENED;
        else
            d.deepest = d.deepest * 3 / 4;
    }
    sink_write(out, whole.data, whole.len);
    buf_release(&whole);
    buf_release(&note);
    buf_release(&d.boxes);
    free(d.values);
    call_tree_free(tree);
}
