/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "view/formats/heaptrack_parts.h"
#include "view/profile/profile_summary.h"

#define MOST 400 /* heaptrack_gui shows 500 points */

static int by_time(const void *a, const void *b)
{
    const struct profile_point *x = a, *y = b;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static void add_peak(struct heaptrack_steps *s, struct heaptrack_step at, uint64_t peak_ns, double bytes)
{
    s->peak = s->at.len;
    at.time_ns = peak_ns;
    at.live = bytes;
    *vec_push(&s->at) = at;
}

/* Adds a step for each point, with the sum of the latest points of all images, a step for the peak among them, and one
 * for the end. */
static void add_points(struct heaptrack_steps *s, const struct profile *p, const struct heaptrack_sums *sums,
                       double at_peak)
{
    struct profile_summary f = profile_summary_of(p);
    size_t n = p->points.len;
    struct profile_point *points = mem_array(n + 1, sizeof(*points));
    struct profile_point *last = mem_array(p->images.len + 1, sizeof(*last));
    struct heaptrack_step all = {.share = n ? 0 : 1};
    double live = 0, allocated = 0, ever = sums->allocated > 0 ? sums->allocated : 1;
    uint64_t end_ns = f.taken_ns,
             peak_ns = f.main_image == PROFILE_NONE ? 0 : p->images.at[f.main_image].peak_ns;
    bool peak_added = false;
    if (!peak_ns || peak_ns > end_ns || sums->past)
        peak_ns = end_ns;
    for (size_t i = 0; i < n; i++)
        points[i] = p->points.at[i];
    qsort(points, n, sizeof(*points), by_time);
    for (size_t i = 0; i < n; i++) {
        const struct profile_point *it = &points[i], *before = &last[it->image];
        if (!peak_added && it->time_ns >= peak_ns)
            add_peak(s, all, peak_ns, at_peak);
        peak_added |= it->time_ns >= peak_ns;
        live += it->live_bytes - before->live_bytes;
        allocated += it->allocated_bytes - before->allocated_bytes;
        all.time_ns = it->time_ns;
        all.live = fmin(fmax(live, 0) * sums->scale, sums->past ? INFINITY : at_peak);
        all.share = fmin(fmax(allocated / ever, all.share), 1);
        all.rss_bytes += it->rss_anon_bytes - before->rss_anon_bytes;
        last[it->image] = *it;
        if (n <= MOST || i * MOST / n != (i + 1) * MOST / n)
            *vec_push(&s->at) = all;
    }
    if (!peak_added)
        add_peak(s, all, peak_ns, at_peak);
    *vec_push(&s->at) =
        (struct heaptrack_step){.time_ns = all.time_ns > end_ns ? all.time_ns : end_ns,
                                .live = sums->bytes[HEAPTRACK_KEPT] + sums->bytes[HEAPTRACK_LATE],
                                .share = 1};
    free(points);
    free(last);
}

/* Until the peak the objects that are live then are allocated, as far as no later step has less. After it those that
 * are not live at the end are freed, and the others of the end allocated. */
static void plan_lasting(struct heaptrack_steps *s, const double bytes[static HEAPTRACK_ROLES],
                         double at_peak)
{
    double lowest = at_peak;
    size_t last = s->at.len - 1;
    for (size_t i = s->peak + 1; i-- > 0;) {
        struct heaptrack_step *it = &s->at.at[i];
        lowest = fmin(lowest, it->live);
        it->allocated[HEAPTRACK_KEPT] = it->allocated[HEAPTRACK_PEAK] = at_peak > 0 ? lowest / at_peak : 1;
    }
    lowest = at_peak;
    for (size_t i = s->peak + 1; i <= last; i++) {
        struct heaptrack_step *it = &s->at.at[i];
        double late = (double)(i - s->peak) / (double)(last - s->peak);
        lowest = fmin(lowest, it->live);
        double left = (lowest - bytes[HEAPTRACK_KEPT] - late * bytes[HEAPTRACK_LATE]) / bytes[HEAPTRACK_PEAK];
        it->allocated[HEAPTRACK_KEPT] = it->allocated[HEAPTRACK_PEAK] = 1;
        it->allocated[HEAPTRACK_LATE] = late;
        it->released[HEAPTRACK_PEAK] =
            i == last ? 1 : fmax(it[-1].released[HEAPTRACK_PEAK], 1 - fmin(fmax(left, 0), 1));
    }
}

/* Brief objects are allocated as the profile's bytes are, or sooner where the curve needs more. As many are live as
 * fill the curve above the lasting objects. */
static void plan_brief(struct heaptrack_steps *s, const double bytes[static HEAPTRACK_ROLES])
{
    const struct heaptrack_step *peak = &s->at.at[s->peak], *end = &s->at.at[s->at.len - 1];
    double allocated = 0, released = 0, all = bytes[HEAPTRACK_BRIEF];
    vec_each (struct heaptrack_step, it, &s->at) {
        double part = all > 0 ? it->live / all : 0;
        for (enum heaptrack_role role = HEAPTRACK_KEPT; role < HEAPTRACK_TOP && all > 0; role++)
            part -= (it->allocated[role] - it->released[role]) * bytes[role] / all;
        part = fmin(fmax(part, 0), 1);
        allocated = fmin(fmax(fmax(it->share, allocated), released + part), 1);
        released = fmax(released, allocated - part);
        it->allocated[HEAPTRACK_BRIEF] = allocated;
        it->released[HEAPTRACK_BRIEF] = it == peak || it == end ? allocated : released;
        it->allocated[HEAPTRACK_TEMPORARY] = it->released[HEAPTRACK_TEMPORARY] = it->share;
        it->allocated[HEAPTRACK_TOP] = it->released[HEAPTRACK_TOP] = it >= peak;
    }
}

void heaptrack_steps_make(struct heaptrack_steps *s, const struct profile *p,
                          const struct heaptrack_sums *sums)
{
    double at_peak = heaptrack_at_peak(sums);
    add_points(s, p, sums, at_peak);
    plan_lasting(s, sums->bytes, at_peak);
    plan_brief(s, sums->bytes);
}
