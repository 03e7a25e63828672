/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/rollup_calls.h"

#include <string.h>

#include "base/sigsafe/pattern.h"

enum { NOT_ASKED, FITS, FITS_NOT };

void calls_init(struct calls *c, const struct profile *p, const char *pattern)
{
    *c = (struct calls){.p = p, .pattern = pattern};
    if (!pattern)
        return;
    c->lines = mem_array(p->lines.len, 1);
    c->stacks = mem_array(p->stacks.len, 1);
}

void calls_release(struct calls *c)
{
    free(c->lines);
    free(c->stacks);
    vec_release(&c->frames);
}

static bool frame_fits(struct calls *c, const struct frame *f)
{
    char scratch[FRAME_NAME_BYTES];
    unsigned char *known = f->line == PROFILE_NONE ? NULL : &c->lines[f->line];
    if (known && *known)
        return *known == FITS;
    const char *function = frame_function(c->p, f, scratch);
    bool fits = pattern_glob(c->pattern, function, strlen(function));
    if (known)
        *known = fits ? FITS : FITS_NOT;
    return fits;
}

/* Sets `frames`. Returns whether a frame matches; then sets `outermost` and `innermost`, too. */
static bool find(struct calls *c, uint32_t stack)
{
    bool found = false;
    frames_of(&c->frames, c->p, stack);
    for (size_t i = 0; i < c->frames.len; i++) {
        if (!frame_fits(c, &c->frames.at[i]))
            continue;
        if (!found)
            c->innermost = i;
        c->outermost = i;
        found = true;
    }
    return found;
}

bool calls_fit(struct calls *c, uint32_t stack)
{
    if (!c->pattern)
        return true;
    unsigned char *known = &c->stacks[stack];
    if (!*known)
        *known = find(c, stack) ? FITS : FITS_NOT;
    return *known == FITS;
}

size_t calls_way(struct calls *c, uint32_t stack, bool to_callers, const struct frame **first)
{
    if (!find(c, stack))
        return 0;
    *first = &c->frames.at[c->outermost];
    if (to_callers)
        return c->frames.len - c->outermost;
    size_t asker = frames_passed_over(c->p, &c->frames), from = asker;
    while (from < c->frames.len && !frame_fits(c, &c->frames.at[from]))
        from++;
    if (from == c->frames.len) /* only skipped wrappers match: the path is the innermost of them */
        asker = from = c->innermost;
    *first = &c->frames.at[from];
    return from - asker + 1;
}

/* ---- the order of a tree ---- */

struct order {
    struct rollup *r;
    int (*compare)(const void *, const void *, void *);
    uint32_t *first, *next;  /* by row: its first child and its next sibling */
    struct rollup_row *rows; /* the `n` rows that are in their final order */
    uint32_t n;
};

static int by_rank(const void *a, const void *b, void *arg)
{
    const struct order *o = arg;
    const struct rollup_row *rows = o->r->rows.at;
    return o->compare(&rows[*(const uint32_t *)a], &rows[*(const uint32_t *)b], o->r);
}

/* Links each row to its siblings and its first child, in the order of `compare`. Returns the first row without a
 * parent; PROFILE_NONE if there are no rows. */
static uint32_t link_rows(struct order *o)
{
    size_t n = o->r->rows.len;
    uint32_t *ranked = mem_array(n, sizeof(*ranked)), top = PROFILE_NONE;
    for (uint32_t i = 0; i < n; i++) {
        ranked[i] = i;
        o->first[i] = PROFILE_NONE;
    }
    if (n)
        qsort_r(ranked, n, sizeof(*ranked), by_rank, o);
    for (size_t i = n; i-- > 0;) { /* from the last to the first, since each is put at the head of a list */
        uint32_t row = ranked[i], parent = o->r->rows.at[row].parent;
        uint32_t *head = parent == PROFILE_NONE ? &top : &o->first[parent];
        o->next[row] = *head;
        *head = row;
    }
    free(ranked);
    return top;
}

/* Appends the row, the siblings after it, and all their children to `rows`. The recursion is at most as deep as a
 * stack has frames. */
static void place(struct order *o, uint32_t row, uint32_t parent)
{
    for (; row != PROFILE_NONE; row = o->next[row]) {
        uint32_t at = o->n++;
        o->rows[at] = o->r->rows.at[row];
        o->rows[at].parent = parent;
        place(o, o->first[row], at);
    }
}

void calls_order(struct rollup *r, int (*compare)(const void *, const void *, void *))
{
    size_t n = r->rows.len;
    struct order o = {.r = r, .compare = compare};
    o.first = mem_array(n, sizeof(*o.first));
    o.next = mem_array(n, sizeof(*o.next));
    o.rows = mem_array(n, sizeof(*o.rows));
    place(&o, link_rows(&o), PROFILE_NONE);
    if (n)
        memcpy(r->rows.at, o.rows, n * sizeof(*o.rows));
    free(o.first);
    free(o.next);
    free(o.rows);
}
