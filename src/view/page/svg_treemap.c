/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/svg_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define HEIGHT 640.0
#define HEAD   15.0 /* pixels above the parts of a box */
#define EDGE   2.0  /* around them */
#define LEAST  2.0  /* pixels: the sides of the smallest box that is drawn */

/* A directory, a file or a function. */
struct part {
    char *name;
    uint32_t parent; /* of the root: itself */
    struct estimate e;
    struct VEC(uint32_t) children;
};

struct map_drawing {
    const struct svg_options *o;
    struct VEC(struct part) parts; /* 0: all */
    struct map index;              /* by parent and name */
    struct buf boxes;
    double least;
};

static uint32_t part_of(struct map_drawing *d, uint32_t parent, const char *name, size_t len)
{
    struct buf key = BUF_INIT;
    bool added;
    buf_add(&key, &parent, sizeof(parent));
    buf_add(&key, name, len);
    size_t at = map_put(&d->index, key.data, key.len, d->parts.len, &added);
    if (added) {
        struct buf text = BUF_INIT;
        buf_add(&text, name, len);
        *vec_push(&d->parts) = (struct part){.name = buf_detach(&text), .parent = parent};
        *vec_push(&d->parts.at[parent].children) = (uint32_t)at;
    }
    buf_release(&key);
    return (uint32_t)at;
}

/* "src/view/a.c" is a file in two directories. Code without a source is in its module. */
static uint32_t part_of_frame(struct map_drawing *d, const struct call_tree *t, uint32_t node)
{
    const struct call_tree_frame *f = node ? &t->frames.at[t->nodes.at[node].frame] : NULL;
    if (!f)
        return part_of(d, 0, "[no stack]", strlen("[no stack]"));
    const char *file = call_tree_text(t, f->file), *name = call_tree_text(t, f->function);
    uint32_t at = 0;
    if (!*file && f->module) {
        const char *module = frame_basename(call_tree_text(t, f->module));
        at = part_of(d, 0, module, strlen(module));
    }
    while (*file) {
        const size_t len = strcspn(file, "/");
        if (len)
            at = part_of(d, at, file, len);
        file += len + (file[len] == '/');
    }
    return part_of(d, at, name, strlen(name));
}

static void collect(struct map_drawing *d, const struct call_tree *t)
{
    *vec_push(&d->parts) = (struct part){.name = mem_strdup("all")};
    vec_each (const struct call_tree_row, row, &t->rows) {
        const struct estimate of_row = svg_estimate(row->values, d->o->metric), *e = &of_row;
        if (!(e->value > 0))
            continue;
        for (uint32_t at = part_of_frame(d, t, row->at.site);; at = d->parts.at[at].parent) {
            estimate_merge(&d->parts.at[at].e, e);
            if (!at)
                break;
        }
    }
}

static int largest_first(const void *a, const void *b, void *drawing)
{
    const struct map_drawing *d = drawing;
    const struct part *x = &d->parts.at[*(const uint32_t *)a], *y = &d->parts.at[*(const uint32_t *)b];
    if (x->e.value < y->e.value || x->e.value > y->e.value)
        return x->e.value < y->e.value ? 1 : -1;
    return strcmp(x->name, y->name);
}

struct area {
    double x, y, width, height;
};

static void draw_part(struct map_drawing *d, uint32_t at, struct area a, const char *path,
                      const char *colour);

/* How far the worst of `n` boxes in a row along a side is from a square: the larger of its sides by the smaller. */
static double worst_ratio(const double *values, size_t n, double sum, double side, double scale)
{
    double worst = 0;
    const double depth = sum * scale / side;
    for (size_t i = 0; i < n; i++) {
        const double length = values[i] * scale / depth;
        worst = fmax(worst, fmax(length / depth, depth / length));
    }
    return worst;
}

/*
 * Rows of boxes along the shorter side of what is left, each row as long as that makes its boxes squarer (Bruls,
 * Huizing and van Wijk, "Squarified treemaps", 2000).
 */
static void draw_squarified(struct map_drawing *d, const uint32_t *parts, size_t n, struct area a,
                            const char *path, const char *colour)
{
    double sum = 0;
    double *values = mem_array(n + 1, sizeof(*values));
    for (size_t i = 0; i < n; i++)
        sum += values[i] = d->parts.at[parts[i]].e.value;
    const double scale = a.width * a.height / sum;
    for (size_t i = 0; i < n && a.width > 0 && a.height > 0;) {
        const bool upright = a.width >= a.height; /* the row stands on the left */
        const double side = upright ? a.height : a.width;
        double of_row = values[i];
        size_t len = 1;
        while (i + len < n && worst_ratio(values + i, len + 1, of_row + values[i + len], side, scale) <=
                                  worst_ratio(values + i, len, of_row, side, scale))
            of_row += values[i + len++];
        const double depth = of_row * scale / side;
        double at = 0;
        for (size_t k = 0; k < len; k++) {
            const double length = values[i + k] * scale / depth;
            const struct area box = upright ? (struct area){a.x, a.y + at, depth, length}
                                            : (struct area){a.x + at, a.y, length, depth};
            draw_part(d, parts[i + k], box, path, colour);
            at += length;
        }
        if (upright) {
            a.x += depth;
            a.width -= depth;
        } else {
            a.y += depth;
            a.height -= depth;
        }
        i += len;
    }
    free(values);
}

/* A directory that has only one directory is one box with it: "src/view". */
static uint32_t join(const struct map_drawing *d, uint32_t at, struct buf *name)
{
    buf_addstr(name, d->parts.at[at].name);
    while (at && d->parts.at[at].children.len == 1 &&
           d->parts.at[d->parts.at[at].children.at[0]].children.len) {
        at = d->parts.at[at].children.at[0];
        buf_printf(name, "/%s", d->parts.at[at].name);
    }
    return at;
}

static void draw_part(struct map_drawing *d, uint32_t at, struct area a, const char *path, const char *colour)
{
    struct buf name = BUF_INIT, full = BUF_INIT, title = BUF_INIT;
    if (a.width < d->least || a.height < d->least)
        return;
    at = join(d, at, &name);
    struct part *p = &d->parts.at[at];
    buf_printf(&full, "%s%s%s", path, *path ? "/" : "", at ? buf_str(&name) : "");
    buf_printf(&title, "%s\n", at ? buf_str(&full) : "all");
    svg_add_figure(&title, &p->e, d->o->metric, d->parts.at[0].e.value);
    const char *group = colour ? colour : at ? buf_str(&full) : NULL;
    svg_add_box(&d->boxes, &(struct svg_box){.x = a.x,
                                             .y = SVG_TOP + a.y,
                                             .width = a.width,
                                             .height = a.height,
                                             .colour = group,
                                             .label = buf_str(&name),
                                             .title = buf_str(&title)});
    const struct area inner = {a.x + EDGE, a.y + HEAD, a.width - 2 * EDGE, a.height - HEAD - EDGE};
    if (p->children.len && inner.width > d->least && inner.height > d->least) {
        qsort_r(p->children.at, p->children.len, sizeof(*p->children.at), largest_first, d);
        draw_squarified(d, p->children.at, p->children.len, inner, buf_str(&full), group);
    }
    buf_release(&name);
    buf_release(&full);
    buf_release(&title);
}

void svg_treemap_write(struct sink *out, const struct profile *p, const struct svg_options *o)
{
    struct call_tree *tree = call_tree_new(p, o->like);
    struct map_drawing d = {.o = o, .least = LEAST};
    struct buf whole = BUF_INIT, note = BUF_INIT;
    collect(&d, tree);
    buf_printf(&note, "%s by directory, file and function that requested them", svg_metric_words(o->metric));
    do {
        buf_reset(&whole);
        buf_reset(&d.boxes);
        if (d.parts.at[0].e.value > 0)
            draw_part(&d, 0, (struct area){0, 0, SVG_WIDTH, HEIGHT}, "", NULL);
        svg_begin(&whole, SVG_TOP + HEIGHT, o->title, buf_str(&note));
        buf_addstr(&whole, "<g class=\"t\">\n");
        buf_add(&whole, buf_str(&d.boxes), d.boxes.len);
        buf_addstr(&whole, "</g>\n");
        svg_end(&whole);
        d.least *= 1.5;
    } while (whole.len > SVG_BYTES_MAX && d.least < HEIGHT);
    sink_write(out, whole.data, whole.len);
    vec_each (struct part, part, &d.parts) {
        free(part->name);
        vec_release(&part->children);
    }
    vec_release(&d.parts);
    map_release(&d.index);
    buf_release(&d.boxes);
    buf_release(&whole);
    buf_release(&note);
    call_tree_free(tree);
}
