/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/call_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define SEVERAL_LINES UINT32_MAX

struct build {
    const struct profile *p;
    const struct rollup_options *like;
    uint32_t image; /* only cells of this image count; PROFILE_NONE: all */
    struct call_tree *tree;
    struct map frames, children; /* by content; by parent and frame */
    uint32_t *frame_of_line;     /* by line of the profile: its frame + 1; 0: not known yet */
    struct frames scratch;
};

static uint32_t string_of(struct call_tree *t, const char *text)
{
    bool added;
    size_t at = map_put(&t->string_index, text, strlen(text), t->strings.len, &added);
    if (added)
        *vec_push(&t->strings) = mem_strdup(text);
    return (uint32_t)at;
}

static uint32_t put_frame(struct build *b, const struct call_tree_frame *f)
{
    const uint32_t key[] = {f->function, f->module, f->file, f->kind, f->inlined, f->wrapper, f->nameless};
    bool added;
    size_t at = map_put(&b->frames, key, sizeof(key), b->tree->frames.len, &added);
    if (added)
        *vec_push(&b->tree->frames) = *f;
    return (uint32_t)at;
}

static uint32_t frame_of(struct build *b, const struct frame *f)
{
    char scratch[FRAME_NAME_BYTES];
    uint32_t *known = f->line == PROFILE_NONE ? NULL : &b->frame_of_line[f->line];
    if (known && *known)
        return *known - 1;
    const uint32_t at = put_frame(
        b,
        &(struct call_tree_frame){.function = string_of(b->tree, frame_function(b->p, f, scratch)),
                                  .module = string_of(b->tree, frame_module(b->p, f)),
                                  .file = string_of(b->tree, frame_file(b->p, f)),
                                  .kind = f->location == PROFILE_NONE ? CALL_TREE_MARKER : CALL_TREE_CODE,
                                  .inlined = frame_inlined(b->p, f),
                                  .wrapper = f->line != PROFILE_NONE && b->p->lines.at[f->line].wrapper,
                                  .nameless = f->location != PROFILE_NONE &&
                                              (f->line == PROFILE_NONE || b->p->lines.at[f->line].nameless)});
    if (known)
        *known = at + 1;
    return at;
}

static uint32_t child_of(struct build *b, uint32_t parent, uint32_t frame)
{
    bool added;
    size_t at = map_put_u64(&b->children, (uint64_t)parent << 32 | frame, b->tree->nodes.len, &added);
    if (added)
        *vec_push(&b->tree->nodes) = (struct call_tree_node){.parent = parent, .frame = frame};
    return (uint32_t)at;
}

static void note_line(struct call_tree_node *n, uint32_t line)
{
    n->line = !n->line || n->line == line ? line : SEVERAL_LINES;
}

static struct call_tree_place place_of(struct build *b, uint32_t below, uint32_t stack)
{
    frames_of(&b->scratch, b->p, stack);
    const struct frame *frames = b->scratch.at, *owner = frames_owner(b->p, &b->scratch);
    const size_t wrappers = frames_passed_over(b->p, &b->scratch);
    struct call_tree_place at = {
        .node = below, .site = below, .owner = below, .line = frame_line(b->p, &frames[wrappers])};
    for (size_t i = b->scratch.len; i-- > 0;) {
        at.node = child_of(b, at.node, frame_of(b, &frames[i]));
        note_line(&b->tree->nodes.at[at.node], frame_line(b->p, &frames[i]));
        if (i == wrappers)
            at.site = at.node;
        if (&frames[i] == owner)
            at.owner = at.node;
    }
    return at;
}

/* The same for a stack of an image that was placed before. */
static struct call_tree_place known_place(struct build *b, uint32_t image, uint32_t below, uint32_t stack)
{
    struct call_tree *t = b->tree;
    bool added;
    const size_t at = map_put_u64(&t->place_index, (uint64_t)image << 32 | stack, t->places.len, &added);
    if (added)
        *vec_push(&t->places) = place_of(b, below, stack);
    return t->places.at[at];
}

/* Cells are to be found in the tree, too. Stacks of one row may differ in their numbers. */
static void add_places(struct build *b, uint32_t image, uint32_t below)
{
    for (uint32_t i = 0; i < b->p->cells.len; i++) {
        const struct profile_cell *c = &b->p->cells.at[i];
        if ((image == PROFILE_NONE || c->image == image) &&
            (!b->like->keep || b->like->keep(b->like->arg, b->p, i)))
            known_place(b, c->image, below, c->stack);
    }
}

static bool keep_cell(void *arg, const struct profile *p, uint32_t cell)
{
    const struct build *b = arg;
    return (b->image == PROFILE_NONE || p->cells.at[cell].image == b->image) &&
           (!b->like->keep || b->like->keep(b->like->arg, p, cell));
}

static bool keep_sample(void *arg, const struct profile *p, uint32_t sample)
{
    const struct build *b = arg;
    return b->like->keep_sample(b->like->arg, p, sample);
}

static uint32_t node_of_process(struct build *b, uint32_t image)
{
    const struct profile_image *i = &b->p->images.at[image];
    struct buf name = BUF_INIT;
    buf_addstr(&name, profile_text(b->p, i->comm));
    if (!profile_is_kernel(i))
        buf_printf(&name, " (%d)", i->pid);
    const struct call_tree_frame f = {.function = string_of(b->tree, buf_str(&name)),
                                      .kind = CALL_TREE_PROCESS};
    buf_release(&name);
    return child_of(b, 0, put_frame(b, &f));
}

/* `image` PROFILE_NONE: there is only one, and its stacks begin at the root. */
static void add_image(struct build *b, uint32_t image)
{
    struct rollup_options o = {.group = ROLLUP_BY_STACK, .keep = keep_cell, .arg = b};
    o.keep_sample = b->like->keep_sample ? keep_sample : NULL;
    b->image = image;
    struct rollup *r = rollup_new(b->p, &o);
    *vec_push(&b->tree->rollups) = r;
    const uint32_t below = image == PROFILE_NONE || !r->rows.len ? 0 : node_of_process(b, image);
    vec_each (const struct rollup_row, row, &r->rows)
        *vec_push(&b->tree->rows) = (struct call_tree_row){
            .at = known_place(b, image == PROFILE_NONE ? 0 : image, below, row->index), .values = &row->self};
    add_places(b, image, below);
}

/* ---- the order of nodes ---- */

static int by_parent_and_name(const void *a, const void *b, void *tree)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct call_tree *t = tree;
    const struct call_tree_node *x = &t->nodes.at[i], *y = &t->nodes.at[k];
    if (x->parent != y->parent)
        return (x->parent > y->parent) - (x->parent < y->parent);
    if (!i || !k) /* the root is its own parent */
        return (i != 0) - (k != 0);
    int order = strcmp(call_tree_text(t, t->frames.at[x->frame].function),
                       call_tree_text(t, t->frames.at[y->frame].function));
    return order ? order : (i > k) - (i < k);
}

/* Moves each node to where a walk from the top meets it, with children by name. `number` is by old node. */
static void renumber(struct call_tree *t, const uint32_t *sorted, const uint32_t *first, uint32_t *number)
{
    const uint32_t n = (uint32_t)t->nodes.len;
    struct call_tree_node *old = t->nodes.at, *moved = mem_array(n, sizeof(*moved));
    uint32_t *next = mem_array(n, sizeof(*next)); /* by old node: the child to visit next, in `sorted` */
    memcpy(next, first, n * sizeof(*next));
    uint32_t count = 0, at = 0;
    number[0] = count;
    moved[count++] = old[0];
    for (;;) {
        const uint32_t child = next[at] < n ? sorted[next[at]] : 0;
        if (child && old[child].parent == at) {
            next[at]++;
            number[child] = count;
            moved[count] = old[child];
            moved[count++].parent = number[at];
            at = child;
        } else {
            moved[number[at]].end = count;
            if (!at)
                break;
            at = old[at].parent;
        }
    }
    free(next);
    free(old);
    t->nodes.at = moved;
    t->nodes.cap = n;
}

static int by_node(const void *a, const void *b)
{
    const struct call_tree_row *x = a, *y = b;
    return (x->at.node > y->at.node) - (x->at.node < y->at.node);
}

static void move_place(struct call_tree_place *at, const uint32_t *number)
{
    at->node = number[at->node];
    at->site = number[at->site];
    at->owner = number[at->owner];
}

static void put_in_order(struct call_tree *t)
{
    const uint32_t n = (uint32_t)t->nodes.len;
    uint32_t *sorted = mem_array(n, sizeof(*sorted)), *first = mem_array(n, sizeof(*first)),
             *number = mem_array(n, sizeof(*number));
    for (uint32_t i = 0; i < n; i++) {
        sorted[i] = i;
        first[i] = n;
    }
    qsort_r(sorted, n, sizeof(*sorted), by_parent_and_name, t);
    for (uint32_t i = n; i-- > 0;)
        if (sorted[i])
            first[t->nodes.at[sorted[i]].parent] = i;
    renumber(t, sorted, first, number);
    vec_each (struct call_tree_row, row, &t->rows)
        move_place(&row->at, number);
    vec_each (struct call_tree_place, at, &t->places)
        move_place(at, number);
    qsort(t->rows.at, t->rows.len, sizeof(*t->rows.at), by_node);
    free(sorted);
    free(first);
    free(number);
}

struct call_tree *call_tree_new(const struct profile *p, const struct rollup_options *like)
{
    struct call_tree *t = mem_alloc(sizeof(*t));
    struct build b = {
        .p = p, .like = like, .tree = t, .frame_of_line = mem_array(p->lines.len + 1, sizeof(uint32_t))};
    t->rest_frame = PROFILE_NONE;
    string_of(t, "");
    *vec_push(&t->nodes) = (struct call_tree_node){.frame = PROFILE_NONE};
    if (p->images.len <= 1)
        add_image(&b, PROFILE_NONE);
    else
        for (uint32_t i = 0; i < p->images.len; i++)
            add_image(&b, i);
    vec_each (struct call_tree_node, n, &t->nodes)
        n->line = n->line == SEVERAL_LINES ? 0 : n->line;
    put_in_order(t);
    map_release(&b.frames);
    map_release(&b.children);
    free(b.frame_of_line);
    vec_release(&b.scratch);

    return t;
}

/* ---- fewer nodes ---- */

/* The largest share of any metric, of bytes or of objects, that is at a node or below it. */
static double *weigh(const struct call_tree *t)
{
    const size_t n = t->nodes.len;
    double *weights = mem_array(n, sizeof(*weights)), *sums = mem_array(n, sizeof(*sums));
    for (unsigned k = 0; k < 2 * ROLLUP_METRICS; k++) {
        memset(sums, 0, n * sizeof(*sums));
        vec_each (const struct call_tree_row, row, &t->rows) {
            const struct rollup_value *v = &row->values->of[k / 2];
            sums[row->at.node] += k % 2 ? v->count.value : v->bytes.value;
        }
        for (size_t i = n; i-- > 1;)
            sums[t->nodes.at[i].parent] += sums[i];
        for (size_t i = 0; i < n && sums[0] > 0; i++)
            weights[i] = fmax(weights[i], sums[i] / sums[0]);
    }
    free(sums);
    return weights;
}

static int heaviest_first(const void *a, const void *b, void *weights)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const double *w = weights;
    if (w[i] < w[k] || w[i] > w[k])
        return w[i] < w[k] ? 1 : -1;
    return (i > k) - (i < k);
}

/*
 * The root and the `most` heaviest nodes. A parent weighs at least as much as its child, and comes first if both weigh
 * the same: so the parent of a chosen node is chosen, too.
 */
static bool *choose(const struct call_tree *t, uint32_t most)
{
    const uint32_t n = (uint32_t)t->nodes.len;
    double *weights = weigh(t);
    uint32_t *order = mem_array(n, sizeof(*order));
    bool *stays = mem_array(n, sizeof(*stays));
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order + 1, n - 1, sizeof(*order), heaviest_first, weights);
    for (uint32_t i = 0; i < n && i <= most; i++)
        stays[order[i]] = true;
    free(order);
    free(weights);
    return stays;
}

struct prune {
    struct call_tree *t;
    const bool *stays;            /* by old node */
    struct call_tree_node *nodes; /* the new ones */
    uint32_t n;
    /* By old node: its new one; of one that goes, the [rest] of its nearest ancestor that stays. */
    uint32_t *number;
    uint32_t rest_frame;
};

static uint32_t put_node(struct prune *p, uint32_t parent, uint32_t frame, uint32_t line)
{
    p->nodes[p->n] = (struct call_tree_node){.parent = parent, .frame = frame, .line = line};
    return p->n++;
}

/*
 * Walks the old nodes in their order, and numbers those that stay. Behind the kept nodes below a node comes its [rest].
 * Removed nodes get the number of the [rest] of their nearest ancestor that is kept.
 */
static void number_nodes(struct prune *p)
{
    const struct call_tree_node *old = p->t->nodes.at;
    struct open {
        uint32_t node;
        bool has_rest;
    };
    struct VEC(struct open) open = {0};
    const uint32_t n = (uint32_t)p->t->nodes.len;
    for (uint32_t i = 0;; i++) {
        while (open.len && old[open.at[open.len - 1].node].end <= i) {
            const struct open o = open.at[--open.len];
            const uint32_t at = p->number[o.node];
            if (o.has_rest) {
                const uint32_t rest = put_node(p, at, p->rest_frame, 0);
                p->nodes[rest].end = p->n;
                for (uint32_t k = o.node + 1; k < old[o.node].end; k++)
                    p->number[k] = p->number[k] == UINT32_MAX ? rest : p->number[k];
            }
            p->nodes[at].end = p->n;
        }
        if (i == n)
            break;
        if (!p->stays[i]) {
            open.at[open.len - 1].has_rest = true;
            for (uint32_t k = i; k < old[i].end; k++)
                p->number[k] = UINT32_MAX;
            i = old[i].end - 1;
            continue;
        }
        p->number[i] = put_node(p, i ? p->number[old[i].parent] : 0, old[i].frame, old[i].line);
        *vec_push(&open) = (struct open){i, false};
    }
    vec_release(&open);
}

static void merge_values(struct rollup_values *to, const struct rollup_values *v)
{
    for (int m = 0; m < ROLLUP_METRICS; m++) {
        estimate_merge(&to->of[m].bytes, &v->of[m].bytes);
        estimate_merge(&to->of[m].count, &v->of[m].count);
    }
    to->unknown |= v->unknown;
    to->aged_samples += v->aged_samples;
    to->oldest_ns = v->oldest_ns > to->oldest_ns ? v->oldest_ns : to->oldest_ns;
}

/* Returns whether the place has become part of a [rest]. */
static bool prune_place(const struct prune *p, struct call_tree_place *at)
{
    move_place(at, p->number);
    if (!at->node || p->nodes[at->node].frame != p->rest_frame)
        return false;
    at->site = at->owner = at->node;
    at->line = 0;
    return true;
}

/* Rows of nodes that went become one for each [rest]. */
static void move_rows(struct prune *p)
{
    struct call_tree *t = p->t;
    struct map index = {0}; /* by new node: a number in t->rests */
    size_t kept = 0;
    for (size_t i = 0; i < t->rows.len; i++) {
        struct call_tree_row row = t->rows.at[i];
        if (prune_place(p, &row.at)) {
            bool added;
            const size_t at = map_put_u64(&index, row.at.node, t->rests.len, &added);
            if (added)
                *vec_push(&t->rests) = mem_alloc(sizeof(struct rollup_values));
            merge_values(t->rests.at[at], row.values);
            if (!added)
                continue;
            row.values = t->rests.at[at];
        }
        t->rows.at[kept++] = row;
    }
    t->rows.len = kept;
    map_release(&index);
    vec_each (struct call_tree_place, at, &t->places)
        prune_place(p, at);
    if (kept)
        qsort(t->rows.at, kept, sizeof(*t->rows.at), by_node);
}

uint32_t call_tree_prune(struct call_tree *t, uint32_t most)
{
    const uint32_t n = (uint32_t)t->nodes.len;
    if (n <= most + 1)
        return 0;
    bool *stays = choose(t, most);
    struct prune p = {.t = t, .stays = stays};
    p.rest_frame = t->rest_frame = (uint32_t)t->frames.len;
    const uint32_t name = string_of(t, "[rest]");
    *vec_push(&t->frames) = (struct call_tree_frame){.function = name, .kind = CALL_TREE_MARKER};
    p.nodes = mem_array(2 * (size_t)n, sizeof(*p.nodes));
    p.number = mem_array(n, sizeof(*p.number));
    number_nodes(&p);
    move_rows(&p);
    free(t->nodes.at);
    t->nodes.at = p.nodes;
    t->nodes.cap = 2 * (size_t)n;
    t->nodes.len = p.n;
    free(p.number);
    free(stays);
    return n - p.n;
}

uint32_t call_tree_row(const struct call_tree *t, const struct profile *p, uint32_t cell)
{
    const struct profile_cell *c = &p->cells.at[cell];
    const size_t number = map_get_u64(&t->place_index, (uint64_t)c->image << 32 | c->stack);
    if (number == MAP_NONE)
        return PROFILE_NONE;
    const struct call_tree_place *at = &t->places.at[number];
    size_t low = 0, high = t->rows.len;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (t->rows.at[middle].at.node < at->node)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < t->rows.len && t->rows.at[low].at.node == at->node; low++)
        if (t->rows.at[low].at.site == at->site && t->rows.at[low].at.line == at->line)
            return (uint32_t)low;
    return PROFILE_NONE;
}

void call_tree_free(struct call_tree *t)
{
    if (!t)
        return;
    vec_each (struct rollup *, r, &t->rollups)
        rollup_free(*r);
    vec_each (struct rollup_values *, v, &t->rests)
        free(*v);
    vec_release(&t->rests);
    vec_each (char *, text, &t->strings)
        free(*text);
    vec_release(&t->strings);
    vec_release(&t->frames);
    vec_release(&t->nodes);
    vec_release(&t->rows);
    vec_release(&t->rollups);
    map_release(&t->string_index);
    map_release(&t->place_index);
    vec_release(&t->places);
    free(t);
}
