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

uint32_t call_tree_string(struct call_tree *t, const char *text)
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
        &(struct call_tree_frame){.function = call_tree_string(b->tree, frame_function(b->p, f, scratch)),
                                  .module = call_tree_string(b->tree, frame_module(b->p, f)),
                                  .file = call_tree_string(b->tree, frame_file(b->p, f)),
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
    const struct call_tree_frame f = {.function = call_tree_string(b->tree, buf_str(&name)),
                                      .kind = CALL_TREE_PROCESS};
    buf_release(&name);
    return child_of(b, 0, put_frame(b, &f));
}

/* `image` PROFILE_NONE: there is only one, and its stacks begin at the root. */
static void add_image(struct build *b, uint32_t image)
{
    struct rollup_options o = {.group = ROLLUP_BY_STACK, .unsorted = true, .keep = keep_cell, .arg = b};
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

/* By the name of the function, then by all else that makes frames differ. */
static int compare_frames(const struct call_tree *t, uint32_t a, uint32_t b)
{
    const struct call_tree_frame *x = &t->frames.at[a], *y = &t->frames.at[b];
    int order = strcmp(call_tree_text(t, x->function), call_tree_text(t, y->function));
    order = order ? order : strcmp(call_tree_text(t, x->module), call_tree_text(t, y->module));
    order = order ? order : strcmp(call_tree_text(t, x->file), call_tree_text(t, y->file));
    if (order)
        return order;
    const int left = x->kind << 3 | x->inlined << 2 | x->wrapper << 1 | x->nameless;
    return left - (y->kind << 3 | y->inlined << 2 | y->wrapper << 1 | y->nameless);
}

static int by_content(const void *a, const void *b, void *tree)
{
    return compare_frames(tree, *(const uint32_t *)a, *(const uint32_t *)b);
}

/* The children of all nodes, those of one node in the order of their frames. */
struct children {
    uint32_t *nodes;
    uint32_t *first; /* by node: where its children begin in `nodes`, and one more for the end */
    uint32_t *rank;  /* by frame: its place in that order */
    const struct call_tree *tree;
};

static void rank_frames(struct children *c)
{
    const uint32_t n = (uint32_t)c->tree->frames.len;
    uint32_t *frames = mem_array(n, sizeof(*frames));
    c->rank = mem_array(n, sizeof(*c->rank));
    for (uint32_t i = 0; i < n; i++)
        frames[i] = i;
    qsort_r(frames, n, sizeof(*frames), by_content, (void *)c->tree);
    for (uint32_t i = 0; i < n; i++)
        c->rank[frames[i]] = i;
    free(frames);
}

static int by_rank(const void *a, const void *b, void *children)
{
    const struct children *c = children;
    const struct call_tree_node *nodes = c->tree->nodes.at;
    const uint32_t x = c->rank[nodes[*(const uint32_t *)a].frame],
                   y = c->rank[nodes[*(const uint32_t *)b].frame];
    return (x > y) - (x < y);
}

static void find_children(struct children *c, const struct call_tree *t)
{
    const uint32_t n = (uint32_t)t->nodes.len;
    *c = (struct children){
        .nodes = mem_array(n, sizeof(*c->nodes)), .first = mem_array(n + 2, sizeof(*c->first)), .tree = t};
    rank_frames(c);
    uint32_t *end = c->first + 1; /* while the children of a node are filled in */
    for (uint32_t i = 1; i < n; i++)
        end[t->nodes.at[i].parent + 1]++;
    for (uint32_t i = 0; i < n; i++)
        end[i + 1] += end[i];
    for (uint32_t i = 1; i < n; i++)
        c->nodes[end[t->nodes.at[i].parent]++] = i;
    for (uint32_t i = 0; i < n; i++)
        if (c->first[i + 1] - c->first[i] > 1)
            qsort_r(c->nodes + c->first[i], c->first[i + 1] - c->first[i], sizeof(*c->nodes), by_rank, c);
}

/* Moves each node to where a walk from the top meets it, with children by name. `number` is by old node. */
static void renumber(struct call_tree *t, const struct children *c, uint32_t *number)
{
    const uint32_t n = (uint32_t)t->nodes.len;
    struct call_tree_node *old = t->nodes.at, *moved = mem_array(n, sizeof(*moved));
    uint32_t *next = mem_array(n, sizeof(*next)); /* by old node: the child to visit next */
    memcpy(next, c->first, n * sizeof(*next));
    uint32_t count = 0, at = 0;
    number[0] = count;
    moved[count++] = old[0];
    for (;;) {
        if (next[at] < c->first[at + 1]) {
            const uint32_t child = c->nodes[next[at]++];
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

static int by_place(const void *a, const void *b)
{
    const struct call_tree_place *x = &((const struct call_tree_row *)a)->at,
                                 *y = &((const struct call_tree_row *)b)->at;
    const uint32_t left[] = {x->node, x->site, x->line, x->owner},
                   right[] = {y->node, y->site, y->line, y->owner};
    for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++)
        if (left[i] != right[i])
            return left[i] > right[i] ? 1 : -1;
    return 0;
}

void call_tree_sort_rows(struct call_tree *t)
{
    if (t->rows.len)
        qsort(t->rows.at, t->rows.len, sizeof(*t->rows.at), by_place);
}

void call_tree_move_place(struct call_tree_place *at, const uint32_t *number)
{
    at->node = number[at->node];
    at->site = number[at->site];
    at->owner = number[at->owner];
}

static void put_in_order(struct call_tree *t)
{
    uint32_t *number = mem_array(t->nodes.len, sizeof(*number));
    struct children c;
    find_children(&c, t);
    renumber(t, &c, number);
    vec_each (struct call_tree_row, row, &t->rows)
        call_tree_move_place(&row->at, number);
    vec_each (struct call_tree_place, at, &t->places)
        call_tree_move_place(at, number);
    call_tree_sort_rows(t);
    free(c.nodes);
    free(c.first);
    free(c.rank);
    free(number);
}

struct call_tree *call_tree_new(const struct profile *p, const struct rollup_options *like)
{
    struct call_tree *t = mem_alloc(sizeof(*t));
    struct build b = {
        .p = p, .like = like, .tree = t, .frame_of_line = mem_array(p->lines.len + 1, sizeof(uint32_t))};
    t->rest_frame = PROFILE_NONE;
    call_tree_string(t, "");
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

static void add_scaled(struct rollup_values *to, const struct rollup_values *v, double factor)
{
    for (int m = 0; m < ROLLUP_METRICS; m++) {
        struct rollup_value part = v->of[m];
        estimate_scale(&part.bytes, factor);
        estimate_scale(&part.count, factor);
        estimate_merge(&to->of[m].bytes, &part.bytes);
        estimate_merge(&to->of[m].count, &part.count);
    }
    to->unknown |= v->unknown;
}

void call_tree_combine(struct call_tree *t, double own, const struct call_tree *other, double factor)
{
    for (size_t i = 0; i < t->rows.len; i++) {
        struct rollup_values *sum = mem_alloc(sizeof(*sum));
        add_scaled(sum, t->rows.at[i].values, own);
        if (other)
            add_scaled(sum, other->rows.at[i].values, factor);
        *vec_push(&t->rests) = sum;
        t->rows.at[i].values = sum;
    }
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
