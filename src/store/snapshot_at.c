/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/recording_reader.h"

#include <string.h>

/* Returns whether the profile is to have its stored moments: it is of the end, and they were not left out. */
static bool loads_all(const struct loader *l)
{
    return !l->at_ns && !(l->r->without & (RECORDING_MOMENTS | RECORDING_POINTS));
}

static void use_point(struct loader *l, struct scan *s, const struct row_point *q)
{
    struct loaded_image *image = &l->images.at[q->point.image];
    bool added = true;
    if (image->index == PROFILE_NONE || (l->at_ns && q->point.time_ns > *l->at_ns))
        return;
    image->rss_anon_bytes = q->point.rss_anon_bytes;
    if (!(l->r->without & RECORDING_POINTS)) {
        struct profile_point *it = vec_push(&l->p->points);
        *it = q->point;
        it->image = image->index;
    }
    if (loads_all(l) && q->moment != ROW_NO_MOMENT) {
        map_put_u64(&l->moments, (uint64_t)q->moment, l->p->moments.len, &added);
        *vec_push(&l->p->moments) =
            (struct profile_moment){.image = image->index, .time_ns = q->point.time_ns};
        s->row.bad |= !added;
    }
    if (!image->past || q->moment == ROW_NO_MOMENT)
        return;
    image->cut_ns = q->point.time_ns; /* points come in the order of time */
    map_put_u64(&l->moments, (uint64_t)q->moment, q->point.image, &added);
    l->last_moment = q->moment > l->last_moment ? q->moment : l->last_moment;
    s->row.bad |= !added;
}

static int scan_points(struct loader *l, struct scan *s, struct error *e)
{
    while (reader_scan_row(s)) {
        struct row_point q = {0};
        row_point(&s->row, &l->rows, &q);
        if (!s->row.bad)
            use_point(l, s, &q);
    }
    return reader_scan_end(s, e);
}

/* What is so of the points of one image until a time. */
#define UNTIL "WHERE image = ?1 AND time_ns <= ?2"

static int begin_past_points(struct scan *s, struct loader *l, const char *where)
{
    int64_t at_ns = *l->at_ns > INT64_MAX ? INT64_MAX : (int64_t)*l->at_ns;
    reader_scan_some(s, l->r, SCHEMA_POINT, "*", where);
    if (!s->row.rc)
        s->row.rc = sqlite3_bind_int64(s->row.stmt, 2, at_ns);
    return s->row.rc;
}

static bool past_point(struct loader *l, struct scan *s, struct row_point *q)
{
    if (!reader_scan_row(s))
        return false;
    row_point(&s->row, &l->rows, q);
    return !s->row.bad;
}

/* Only what tells of the past: the moments, and how much was resident. */
static int load_past_points(struct loader *l, struct error *e)
{
    struct scan moments, last;
    struct row_point q = {0};
    begin_past_points(&moments, l, UNTIL " AND moment IS NOT NULL");
    begin_past_points(&last, l, "WHERE image = ?1 AND time_ns = (SELECT max(time_ns) FROM point " UNTIL ")");
    for (size_t i = 0; i < l->images.len && !moments.row.bad && !last.row.bad; i++) {
        if (!l->images.at[i].past)
            continue;
        reader_scan_again(&moments, (int64_t)i);
        while (past_point(l, &moments, &q))
            use_point(l, &moments, &q);
        reader_scan_again(&last, (int64_t)i);
        if (past_point(l, &last, &q))
            l->images.at[i].rss_anon_bytes = q.point.rss_anon_bytes;
    }
    int rc = reader_scan_end(&moments, e), bad = reader_scan_end(&last, rc ? NULL : e);
    return rc ? rc : bad;
}

int load_points(struct loader *l, struct error *e)
{
    struct scan s;
    if (l->r->without & RECORDING_POINTS)
        return l->at_ns ? load_past_points(l, e) : 0;
    reader_scan(&s, l->r, SCHEMA_POINT);
    return scan_points(l, &s, e);
}

/* What is not in the moments is not known of the past. */
static void forget(struct loader *l)
{
    vec_each (struct loaded_image, i, &l->images) {
        if (!i->past)
            continue;
        struct profile_image *image = &l->p->images.at[i->index];
        image->state = PROFILE_IMAGE_RUNNING;
        image->signal = 0;
        image->past = true;
        image->taken_ns = i->cut_ns;
        image->rss_anon_bytes = i->rss_anon_bytes;
        if (image->peak_ns > i->cut_ns) {
            image->peak_ns = 0;
            image->peak_bytes = 0;
        }
    }
    vec_each (struct profile_cell, c, &l->p->cells) { /* by row still, and so are their images */
        const struct loaded_image *i = &l->images.at[c->image];
        static const struct profile_sums none;
        if (!i->past)
            continue;
        c->allocated = c->freed = none;
        if (!l->p->images.at[i->index].peak_ns)
            c->at_peak = none;
        c->temporary_samples = 0;
        c->temporary_bytes = 0;
        memset(c->lifetimes, 0, sizeof(c->lifetimes));
    }
}

struct recall {
    struct loader *l;
    int64_t moment;
    size_t image; /* of that moment; MAP_NONE: it does not count */
    uint32_t cell;
};

/* A later moment says the last word on a cell, and comes first. */
static bool wants_moment_cell(void *arg, struct scan *s)
{
    struct recall *to = arg;
    struct loader *l = to->l;
    struct row_moment_cell m = {0};
    row_moment_key(&s->row, &l->rows, &m);
    if (s->row.bad)
        return false;
    if (m.moment != to->moment)
        to->image = map_get_u64(&l->moments, (uint64_t)m.moment);
    to->moment = m.moment;
    to->cell = m.cell;
    struct loaded_cell *c = &l->cells.at[m.cell];
    s->row.bad |= to->image != MAP_NONE && c->image != to->image;
    return (to->image != MAP_NONE && !c->recalled) || !(l->r->without & RECORDING_POINTS);
}

static void take_moment_cell(void *arg, struct scan *s)
{
    struct recall *to = arg;
    struct row_moment_cell m = {0};
    row_moment_sums(&s->row, &to->l->rows, &m);
    struct loaded_cell *known = &to->l->cells.at[to->cell];
    if (s->row.bad || known->recalled || to->image == MAP_NONE)
        return;
    known->recalled = true;
    struct profile_cell *c = &to->l->p->cells.at[to->cell];
    c->allocated = m.allocated;
    c->freed = m.freed;
}

/* Those after the last that counts, and those that a later one overrules, are read only when nothing is left out: so
 * that damage in them is noticed. */
static int recall(struct loader *l, struct error *e)
{
    struct recall to = {l, -1, MAP_NONE};
    const struct each of = {
        .table = SCHEMA_MOMENT_CELL,
        .columns = ROW_MOMENT_SUMS,
        .where = "moment <= ?1",
        .parameter = l->r->without & RECORDING_POINTS ? l->last_moment : INT64_MAX,
        .falls = true,
        .wants = wants_moment_cell,
        .take = take_moment_cell,
        .arg = &to,
    };
    return reader_each(l->r, &of, e);
}

/* The key is the number of the moment and the cell, so that the cells of one moment come together. */
static void take_change(void *arg, struct scan *s)
{
    struct loader *l = arg;
    struct row_moment_cell m = {0};
    row_moment_key(&s->row, &l->rows, &m);
    row_moment_sums(&s->row, &l->rows, &m);
    if (s->row.bad)
        return;
    const size_t at = map_get_u64(&l->moments, (uint64_t)m.moment);
    if (at == MAP_NONE) /* no point has it: nobody can ask for it */
        return;
    struct profile_moment *moment = &l->p->moments.at[at];
    s->row.bad |= l->p->cells.at[m.cell].image != moment->image || l->p->moment_cells.len >= UINT32_MAX;
    if (!moment->n++)
        moment->first = (uint32_t)l->p->moment_cells.len;
    *vec_push(&l->p->moment_cells) =
        (struct profile_moment_cell){.cell = m.cell, .allocated = m.allocated, .freed = m.freed};
}

int load_moments(struct loader *l, struct error *e)
{
    bool past = false;
    if (loads_all(l))
        return reader_each(l->r, &(struct each){.table = SCHEMA_MOMENT_CELL, .take = take_change, .arg = l},
                           e);
    vec_each (const struct loaded_image, i, &l->images)
        past |= i->past;
    if (!past)
        return 0;
    forget(l);
    return recall(l, e);
}
