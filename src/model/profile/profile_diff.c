/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/profile_diff.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "model/profile/diff_captures.h"
#include "model/profile/profile_concat.h"
#include "model/profile/spread.h"

/* ---- parts of a cell ---- */

struct profile_sums diff_sums_of(const struct profile_cell *c, enum rollup_metric metric)
{
    switch (metric) {
    case ROLLUP_PEAK:
        return c->at_peak;
    case ROLLUP_ALLOCATED:
        return c->allocated;
    case ROLLUP_TEMPORARY:
        return profile_temporary(c);
    default:
        return profile_live(c);
    }
}

static bool only_adds_up(enum rollup_metric metric)
{
    return metric == ROLLUP_ALLOCATED || metric == ROLLUP_TEMPORARY;
}

static struct profile_sums stayed_of(const struct profile_pair_cell *c, const struct profile_pair_image *i,
                                     enum rollup_metric metric)
{
    if (!i->same)
        return (struct profile_sums){.samples = 0};
    return metric == ROLLUP_LIVE   ? c->stayed
           : metric == ROLLUP_PEAK ? c->stayed_peak
                                   : diff_sums_of(&c->of[!i->later], metric);
}

/* Returns whether the part must be 0, for all objects and not only for the sampled ones. */
static bool is_naught(const struct profile_pair_image *i, enum rollup_metric metric, enum diff_part part)
{
    enum profile_pair_side side = part == DIFF_GREW ? PROFILE_PAIR_AFTER : PROFILE_PAIR_BEFORE;
    if (part == DIFF_STAYED)
        return !i->same;
    if (part != DIFF_GREW && part != DIFF_SHRANK)
        return false;
    return i->still || (metric == ROLLUP_PEAK && i->same_peak) ||
           (only_adds_up(metric) && i->same && i->later != side);
}

static struct profile_sums part_of(const struct profile_pair_cell *c, const struct profile_pair_image *i,
                                   enum rollup_metric metric, enum diff_part part)
{
    bool before = part == DIFF_BEFORE || part == DIFF_SHRANK;
    struct profile_sums whole =
        diff_sums_of(&c->of[before ? PROFILE_PAIR_BEFORE : PROFILE_PAIR_AFTER], metric);
    struct profile_sums stayed = stayed_of(c, i, metric);
    if (is_naught(i, metric, part))
        return (struct profile_sums){.samples = 0};
    if (part == DIFF_STAYED)
        return stayed;
    return part == DIFF_BEFORE || part == DIFF_AFTER ? whole : profile_pair_less(&whole, &stayed);
}

/* Returns a cell with the sums of the part as allocated and nothing as freed, so that its live sums are the part. */
static struct profile_cell cell_of(const struct profile_pair *j, const struct profile_pair_cell *c,
                                   enum rollup_metric metric, enum diff_part part)
{
    const struct profile_pair_image *i = &j->images.at[c->of[PROFILE_PAIR_AFTER].image];
    struct profile_cell it = {.image = c->of[PROFILE_PAIR_AFTER].image,
                              .stack = c->of[PROFILE_PAIR_AFTER].stack,
                              .thread = c->of[PROFILE_PAIR_AFTER].thread,
                              .size_class = c->of[PROFILE_PAIR_AFTER].size_class,
                              .period_bytes = c->of[PROFILE_PAIR_AFTER].period_bytes,
                              .allocated = part_of(c, i, metric, part)};
    enum profile_pair_side side =
        part == DIFF_BEFORE || part == DIFF_SHRANK ? PROFILE_PAIR_BEFORE : PROFILE_PAIR_AFTER;
    /* The period bounds the objects that were not sampled. A part that must be 0 has none: period 1. A side without
     * this cell has its own largest period. */
    if (is_naught(i, metric, part))
        it.period_bytes = 1;
    else if (!c->of_side[side] && j->period_bytes[side])
        it.period_bytes = j->period_bytes[side];
    return it;
}

/* ---- totals ---- */

/* Adds an empty cell of the profile's period if nothing was sampled: such a profile has no cells, but objects may
 * exist that were not sampled. */
static void add_silence(struct rollup_value *v, const struct profile *p)
{
    const struct profile_cell silent = {.period_bytes = profile_silent_period(p)};
    if (!silent.period_bytes)
        return;
    profile_estimate_bytes(&v->bytes, &silent, &silent.allocated);
    profile_estimate_count(&v->count, &silent, &silent.allocated);
}

static void add_totals(struct diff *d)
{
    for (int m = 0; m < ROLLUP_METRICS; m++)
        for (int part = 0; part < DIFF_PARTS; part++) {
            struct rollup_value *v = &d->total[m].of[part];
            vec_each (const struct profile_pair_cell, c, &d->pair->cells) {
                struct profile_cell it = cell_of(d->pair, c, m, part);
                profile_estimate_bytes(&v->bytes, &it, &it.allocated);
                profile_estimate_count(&v->count, &it, &it.allocated);
            }
            if (part == DIFF_BEFORE || part == DIFF_SHRANK)
                add_silence(v, d->of[PROFILE_PAIR_BEFORE]);
            else if (part != DIFF_STAYED)
                add_silence(v, d->of[PROFILE_PAIR_AFTER]);
        }
}

static unsigned unknown_of(const struct profile *p)
{
    unsigned unknown = 0;
    vec_each (const struct profile_image, i, &p->images) {
        unknown |= profile_is_kernel(i) ? 1u << ROLLUP_TEMPORARY : 0;
        if (i->past)
            unknown |= 1u << ROLLUP_TEMPORARY | (i->peak_ns ? 0 : 1u << ROLLUP_PEAK);
    }
    return unknown;
}

/* ---- rows ---- */

static bool keep_cell(void *arg, const struct profile *p, uint32_t cell)
{
    const struct profile_pair *j = arg;
    (void)p;
    return j->cells.at[cell].kept;
}

/* Returns the name of a row by process or thread; the caller frees it. One image or thread of the joint profile may
 * combine several of each side. */
static char *shared_name(const struct diff *d, const struct rollup_row *row)
{
    const struct profile *p = d->pair->profile;
    const struct profile_thread *t = d->options.group == ROLLUP_BY_THREAD ? &p->threads.at[row->index] : NULL;
    uint32_t image = t ? t->image : row->index;
    const struct profile_pair_image *i = &d->pair->images.at[image];
    struct buf name = BUF_INIT;
    if (i->same)
        return mem_strdup(row->name);
    if (t && !t->tid)
        buf_addstr(&name, "other threads");
    else if (t)
        buf_addstr(&name, *profile_text(p, t->name) ? profile_text(p, t->name) : "threads without a name");
    if (t && p->images.len > 1)
        buf_addstr(&name, " of ");
    if (!t || p->images.len > 1)
        buf_addstr(&name, profile_text(p, p->images.at[image].comm));
    if (!t && i->images[PROFILE_PAIR_BEFORE] + i->images[PROFILE_PAIR_AFTER] > 2)
        buf_printf(&name, " (%u before, %u after)", i->images[PROFILE_PAIR_BEFORE],
                   i->images[PROFILE_PAIR_AFTER]);
    return buf_detach(&name);
}

static struct diff_row *row_of(struct diff *d, struct map *keys, const struct rollup_row *from)
{
    struct buf key = BUF_INIT;
    bool added;
    if (from->index != PROFILE_NONE)
        buf_printf(&key, "%u", from->index);
    else
        buf_printf(&key, "%s%c%s", from->name, '\0', from->module);
    size_t at = map_put(keys, key.data, key.len, d->rows.len, &added);
    buf_release(&key);
    if (added) {
        bool shared = d->options.group == ROLLUP_BY_THREAD || d->options.group == ROLLUP_BY_PROCESS;
        *vec_push(&d->rows) =
            (struct diff_row){.name = shared ? shared_name(d, from) : mem_strdup(from->name),
                              .module = from->module,
                              .file = from->file,
                              .index = from->index};
    }
    return &d->rows.at[at];
}

/* Gives the joint profile the cells of a part. */
static void take_part(struct diff *d, enum rollup_metric metric, enum diff_part part)
{
    struct profile *p = d->pair->profile;
    p->cells.len = 0;
    vec_each (const struct profile_pair_cell, c, &d->pair->cells)
        *vec_push(&p->cells) = cell_of(d->pair, c, metric, part);
}

struct call_tree *diff_tree_of(struct diff *d, enum rollup_metric metric, uint32_t capture)
{
    const struct rollup_options like = {.group = ROLLUP_BY_STACK, .keep = keep_cell, .arg = d->pair};
    diff_captures_take(d, metric, capture);
    struct call_tree *t = call_tree_new(d->pair->profile, &like);
    call_tree_combine(t, 1 / diff_captures_divisor(d, capture), NULL, 0);
    return t;
}

struct call_tree *diff_tree(struct diff *d, enum rollup_metric metric, enum diff_part part)
{
    const struct rollup_options like = {.group = ROLLUP_BY_STACK, .keep = keep_cell, .arg = d->pair};
    take_part(d, metric, part);
    return call_tree_new(d->pair->profile, &like);
}

/* Makes one rollup for each part, or for each capture. All have the same cells and so the same rows. No row needs
 * DIFF_STAYED. */
static void add_rows(struct diff *d)
{
    struct profile *p = d->pair->profile;
    const struct rollup_options o = {.group = d->options.group, .keep = keep_cell, .arg = d->pair};
    enum rollup_metric metric = rollup_sort_metric(d->options.sort);
    uint32_t n = d->by_capture ? diff_captures_number(d) : DIFF_STAYED;
    struct map keys = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (d->by_capture)
            diff_captures_take(d, metric, i);
        else
            take_part(d, metric, i);
        struct rollup *r = rollup_new(p, &o);
        vec_each (const struct rollup_row, from, &r->rows) {
            struct diff_row *row = row_of(d, &keys, from);
            const struct rollup_value *self = &from->self.of[ROLLUP_LIVE],
                                      *inclusive = &from->inclusive.of[ROLLUP_LIVE];
            if (d->by_capture) {
                diff_captures_add(d, &row->self, i, self);
                diff_captures_add(d, &row->inclusive, i, inclusive);
            } else {
                row->self.of[i] = *self;
                row->inclusive.of[i] = *inclusive;
            }
        }
        rollup_free(r);
    }
    p->cells.len = 0;
    map_release(&keys);
}

/* ---- changes ---- */

static const struct estimate *estimate_of(const struct diff_value *v, enum diff_part part, bool count)
{
    return count ? &v->of[part].count : &v->of[part].bytes;
}

static double difference(const struct diff_value *v, bool count)
{
    return estimate_of(v, DIFF_GREW, count)->value - estimate_of(v, DIFF_SHRANK, count)->value;
}

/* Returns the interval of a part. GREW is part of the memory after, so its upper end is at most the upper end of the
 * memory after; for SHRANK, the same holds with the memory before. */
static struct interval part_interval(const struct diff_value *v, enum diff_part part, bool count)
{
    const struct estimate *e = estimate_of(v, part, count);
    const struct estimate *whole = estimate_of(v, part == DIFF_GREW ? DIFF_AFTER : DIFF_BEFORE, count);
    struct interval i = estimate_interval(e);
    i.high = fmax(fmin(i.high, estimate_interval(whole).high), e->value);
    return i;
}

bool diff_is_exact(const struct diff_value *v, bool count)
{
    return rollup_exact(estimate_of(v, DIFF_GREW, count)) && rollup_exact(estimate_of(v, DIFF_SHRANK, count));
}

/* Returns after less (1 + share) before, by the spread of the captures, of which there must be several. */
static struct spread_change spread_of(const struct diff_value *v, bool count, double share)
{
    const double *of = v->captures[count ? DIFF_COUNT : DIFF_BYTES];
    uint32_t n = v->n[PROFILE_PAIR_BEFORE];
    return spread_compare(of, n, of + n, v->n[PROFILE_PAIR_AFTER], 1 + share);
}

/* Widens the change of the samples by the spread of the captures. */
static void add_spread(struct diff_change *c, const struct diff_value *v, bool count)
{
    struct spread_change s = spread_of(v, count, 0);
    struct interval i = spread_interval(&s, v->tail);
    bool exact = diff_is_exact(v, count);
    c->interval.low = exact ? i.low : fmin(c->interval.low, i.low);
    c->interval.high = exact ? i.high : fmax(c->interval.high, i.high);
    c->value = fmax(fmin(s.value, c->interval.high), c->interval.low);
}

struct interval diff_side_interval(const struct diff_value *v, enum diff_part side, bool count)
{
    const struct estimate *e = estimate_of(v, side, count);
    struct interval sampled = estimate_interval(e);
    const double *of = v->captures[count ? DIFF_COUNT : DIFF_BYTES];
    uint32_t before = v->n[PROFILE_PAIR_BEFORE];
    if (!of)
        return sampled;
    struct interval i = side == DIFF_BEFORE
                            ? spread_mean_interval(of, before, SPREAD_TAIL)
                            : spread_mean_interval(of + before, v->n[PROFILE_PAIR_AFTER], SPREAD_TAIL);
    if (rollup_exact(e))
        return i;
    return (struct interval){fmin(i.low, sampled.low), fmax(i.high, sampled.high)};
}

struct diff_change diff_change(const struct diff_value *v, bool count)
{
    const struct estimate *grew = estimate_of(v, DIFF_GREW, count),
                          *shrank = estimate_of(v, DIFF_SHRANK, count);
    struct interval g = part_interval(v, DIFF_GREW, count), s = part_interval(v, DIFF_SHRANK, count);
    struct diff_change c = {.value = difference(v, count)};
    c.interval.low = c.value - hypot(grew->value - g.low, s.high - shrank->value);
    c.interval.high = c.value + hypot(g.high - grew->value, shrank->value - s.low);
    if (v->captures[DIFF_BYTES])
        add_spread(&c, v, count);
    return c;
}

double diff_least_excess(const struct diff_value *v, bool count, double share)
{
    const struct estimate *grew = estimate_of(v, DIFF_GREW, count),
                          *shrank = estimate_of(v, DIFF_SHRANK, count);
    const struct estimate *stayed = estimate_of(v, DIFF_STAYED, count);
    /* after - (1 + share) before = grew - (1 + share) shrank - share stayed; no two of these terms share an object */
    double excess = grew->value - (1 + share) * shrank->value - share * stayed->value;
    double below = grew->value - part_interval(v, DIFF_GREW, count).low;
    double of_shrank = (1 + share) * (part_interval(v, DIFF_SHRANK, count).high - shrank->value);
    double of_stayed = share * (part_interval(v, DIFF_STAYED, count).high - stayed->value);
    double least = excess - sqrt(below * below + of_shrank * of_shrank + of_stayed * of_stayed);
    if (!v->captures[DIFF_BYTES])
        return least;
    struct spread_change c = spread_of(v, count, share);
    double spread = spread_interval(&c, SPREAD_TAIL).low;
    return diff_is_exact(v, count) ? spread : fmin(least, spread);
}

/* ---- order ---- */

static const struct diff_value *shown_value(const struct diff *d, const struct diff_row *row)
{
    return d->options.inclusive ? &row->inclusive : &row->self;
}

/* Returns whether no sample shows a change in the row; if its values are exact, whether they are equal. */
static bool is_unchanged(const struct diff *d, const struct diff_row *row)
{
    bool count = diff_counts(d->options.sort);
    const struct diff_value *v = shown_value(d, row);
    const struct estimate *grew = estimate_of(v, DIFF_GREW, count),
                          *shrank = estimate_of(v, DIFF_SHRANK, count);
    if (d->spread && diff_is_exact(v, count))
        return diff_captures_alike(v, count);
    if (diff_is_exact(v, count))
        return grew->value == shrank->value;
    return !grew->samples && !shrank->samples;
}

/* If the inclusive changes of several rows are equal, as along a chain of callers, the row that allocated comes
 * first. */
static int larger_first(const void *a, const void *b, void *arg)
{
    const struct diff *d = arg;
    const struct diff_row *x = a, *y = b;
    bool noise = diff_is_noise(&x->change), count = diff_counts(d->options.sort);
    if (noise != diff_is_noise(&y->change))
        return noise ? 1 : -1;
    double of_x = fabs(x->change.value), of_y = fabs(y->change.value);
    if (of_x == of_y) {
        of_x = fabs(difference(&x->self, count));
        of_y = fabs(difference(&y->self, count));
    }
    if (of_x != of_y)
        return of_x < of_y ? 1 : -1;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->module, y->module);
}

static void release_row(struct diff_row *row)
{
    free(row->name);
    diff_captures_release(&row->self);
    diff_captures_release(&row->inclusive);
}

static void sort_rows(struct diff *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->rows.len; i++)
        if (is_unchanged(d, &d->rows.at[i]))
            release_row(&d->rows.at[i]);
        else
            d->rows.at[n++] = d->rows.at[i];
    d->unchanged = d->rows.len - n;
    d->rows.len = n;
    if (d->spread)
        diff_captures_select(d, shown_value);
    vec_each (struct diff_row, row, &d->rows) {
        row->change = diff_change(shown_value(d, row), diff_counts(d->options.sort));
        d->certain += !diff_is_noise(&row->change);
    }
    if (n)
        qsort_r(d->rows.at, n, sizeof(*d->rows.at), larger_first, d);
}

static void set_side(struct diff *d, enum profile_pair_side at, const struct diff_side *side)
{
    d->side[at] = *side;
    d->by_capture |= side->n > 1 || side->divisors;
    d->spread |= side->n > 1;
    if (side->n > 1)
        d->all[at] = profile_concat(side->captures, side->n);
    d->of[at] = side->n > 1 ? d->all[at] : side->captures[0];
    for (uint32_t i = 0; i < side->n; i++) {
        const struct profile *p = side->captures[i];
        d->unknown |= unknown_of(p);
        if (!p->images.len && !profile_silent_period(p))
            d->unknown = ~0u; /* nothing bounds the objects that were not sampled */
    }
}

struct diff *diff_new(const struct profile *before, const struct profile *after, const struct diff_options *o)
{
    const struct diff_side side[PROFILE_PAIR_SIDES] = {{.captures = &before, .n = 1},
                                                       {.captures = &after, .n = 1}};
    struct diff *d = diff_new_of(side, o);
    for (int at = 0; at < PROFILE_PAIR_SIDES; at++)
        d->side[at].captures = &d->of[at]; /* `before` and `after` are of this function */
    return d;
}

struct diff *diff_new_of(const struct diff_side side[static PROFILE_PAIR_SIDES], const struct diff_options *o)
{
    struct diff *d = mem_alloc(sizeof(*d));
    *d = (struct diff){.options = *o, .tail = SPREAD_TAIL};
    for (int at = 0; at < PROFILE_PAIR_SIDES; at++)
        set_side(d, (enum profile_pair_side)at, &side[at]);
    d->pair = profile_pair_new(d->of[PROFILE_PAIR_BEFORE], d->of[PROFILE_PAIR_AFTER], o->keep, o->arg);
    if (d->by_capture)
        diff_captures_add_totals(d);
    else
        add_totals(d);
    if (diff_known(d, rollup_sort_metric(o->sort)))
        add_rows(d);
    sort_rows(d);
    return d;
}

void diff_free(struct diff *d)
{
    if (!d)
        return;
    vec_each (struct diff_row, row, &d->rows)
        release_row(row);
    vec_release(&d->rows);
    for (int m = 0; m < ROLLUP_METRICS; m++)
        diff_captures_release(&d->total[m]);
    for (int side = 0; side < PROFILE_PAIR_SIDES; side++)
        profile_free(d->all[side]);
    profile_pair_free(d->pair);
    free(d);
}
