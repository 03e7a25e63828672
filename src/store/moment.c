/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/reader.h"

#include <string.h>

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
        row_get_point(&s->row, &l->rows, &q);
        if (!s->row.bad)
            use_point(l, s, &q);
    }
    return reader_scan_end(s, e);
}

/* Only what tells of the past: the moments, and how much was resident. */
static int load_past_points(struct loader *l, struct error *e)
{
    struct scan s;
    reader_scan_some(&s, l->r, SCHEMA_POINT, "*", "WHERE time_ns <= ?1 AND moment IS NOT NULL");
    reader_scan_again(&s, *l->at_ns > INT64_MAX ? INT64_MAX : (int64_t)*l->at_ns);
    int rc = scan_points(l, &s, e);
    reader_scan_some(&s, l->r, SCHEMA_POINT, "*",
                     "WHERE image = ?1 AND time_ns = (SELECT max(time_ns) FROM point WHERE image = ?1"
                     " AND time_ns <= ?2)");
    if (!rc && !s.row.rc)
        s.row.rc = sqlite3_bind_int64(s.row.stmt, 2, *l->at_ns > INT64_MAX ? INT64_MAX : (int64_t)*l->at_ns);
    for (size_t i = 0; i < l->images.len && !rc && !s.row.bad; i++) {
        struct row_point q = {0};
        reader_scan_again(&s, (int64_t)i);
        if (!l->images.at[i].past || !reader_scan_row(&s))
            continue;
        row_get_point(&s.row, &l->rows, &q);
        l->images.at[i].rss_anon_bytes = q.point.rss_anon_bytes;
    }
    int bad = reader_scan_end(&s, rc ? NULL : e);
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
        image->past = true;
        image->taken_ns = i->cut_ns;
        image->rss_anon_bytes = i->rss_anon_bytes;
        if (image->peak_ns > i->cut_ns) {
            image->peak_ns = 0;
            image->peak_bytes = 0;
        }
    }
    vec_each (struct loaded_cell, c, &l->cells) {
        const struct loaded_image *i = &l->images.at[c->cell.image];
        static const struct profile_sums none;
        if (!i->past)
            continue;
        c->cell.allocated = c->cell.freed = none;
        if (!l->p->images.at[i->index].peak_ns)
            c->cell.at_peak = none;
        c->cell.temporary_samples = 0;
        c->cell.temporary_bytes = 0;
        memset(c->cell.lifetimes, 0, sizeof(c->cell.lifetimes));
    }
}

/* A later moment says the last word on a cell: they come in the order in which they were. Later ones are read, too, unless
 * points are left out: so that damage in them is noticed. */
static int recall(struct loader *l, struct error *e)
{
    struct scan s;
    int64_t moment = -1;
    size_t image = MAP_NONE;
    reader_scan_some(&s, l->r, SCHEMA_MOMENT_CELL, "*", "WHERE moment <= ?1");
    reader_scan_again(&s, l->r->without & RECORDING_POINTS ? l->last_moment : INT64_MAX);
    while (reader_scan_row(&s)) {
        struct row_moment_cell m = {0};
        row_get_moment_cell(&s.row, &l->rows, &m);
        if (m.moment != moment)
            image = map_get_u64(&l->moments, (uint64_t)m.moment);
        moment = m.moment;
        if (s.row.bad || image == MAP_NONE)
            continue;
        struct profile_cell *c = &l->cells.at[m.cell].cell;
        s.row.bad |= c->image != image;
        c->allocated = m.allocated;
        c->freed = m.freed;
    }
    return reader_scan_end(&s, e);
}

int load_moments(struct loader *l, struct error *e)
{
    bool past = false;
    vec_each (const struct loaded_image, i, &l->images)
        past |= i->past;
    if (!past)
        return 0;
    forget(l);
    return recall(l, e);
}
