/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "view/formats/heaptrack_parts.h"
#include "view/profile/profile_summary.h"

#define MOST 400 /* heaptrack_gui shows 500 points */

/* ---- the curve: all images together ---- */

struct last {
    double live, allocated;
    uint64_t rss_bytes;
};

static int by_time(const void *a, const void *b)
{
    const struct profile_point *x = a, *y = b;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* The sum of what each image had at its latest point. */
static void add_points(struct heaptrack_steps *s, const struct profile *p, const struct heaptrack_sums *sums)
{
    size_t n = p->points.len;
    struct profile_point *points = mem_array(n + 1, sizeof(*points));
    struct last *last = mem_array(p->images.len + 1, sizeof(*last)), all = {0};
    double shown = sums->allocated > 0 ? sums->allocated : 1;
    for (size_t i = 0; i < n; i++)
        points[i] = p->points.at[i];
    qsort(points, n, sizeof(*points), by_time);
    for (size_t i = 0; i < n; i++) {
        struct last *of = &last[points[i].image];
        all.live += points[i].live_bytes - of->live;
        all.allocated += points[i].allocated_bytes - of->allocated;
        all.rss_bytes += points[i].rss_anon_bytes - of->rss_bytes;
        *of = (struct last){points[i].live_bytes, points[i].allocated_bytes, points[i].rss_anon_bytes};
        if (i * MOST / n == (i + 1) * MOST / n && n > MOST)
            continue;
        *vec_push(&s->at) = (struct heaptrack_step){.time_ns = points[i].time_ns,
                                                    .live = fmax(all.live, 0) * sums->scale,
                                                    .share = fmin(fmax(all.allocated / shown, 0), 1),
                                                    .rss_bytes = all.rss_bytes};
    }
    free(points);
    free(last);
}

/* Puts a step where its time is; its share lies between those of its neighbours. Returns its index. */
static size_t insert(struct heaptrack_steps *s, uint64_t time_ns, double live,
                     const struct profile_summary *f)
{
    struct heaptrack_step before = {.time_ns = f->began_ns};
    struct heaptrack_step after = {.time_ns = f->taken_ns, .share = 1};
    size_t at = 0;
    while (at < s->at.len && s->at.at[at].time_ns < time_ns)
        before = s->at.at[at++];
    if (at < s->at.len)
        after = s->at.at[at];
    double span = (double)after.time_ns - (double)before.time_ns;
    double part = span > 0 ? fmin(((double)time_ns - (double)before.time_ns) / span, 1) : 1;
    struct heaptrack_step it = {.time_ns = time_ns, .live = live, .rss_bytes = before.rss_bytes};
    it.share = before.share + fmax(part, 0) * (after.share - before.share);
    vec_push(&s->at);
    for (size_t i = s->at.len - 1; i > at; i--)
        s->at.at[i] = s->at.at[i - 1];
    s->at.at[at] = it;
    return at;
}

static void add_ends(struct heaptrack_steps *s, const struct profile *p, const struct heaptrack_sums *sums)
{
    struct profile_summary f = profile_summary_of(p);
    double at_peak = sums->kept + sums->peak;
    uint64_t end_ns = f.taken_ns;
    uint64_t peak_ns = f.main_image == PROFILE_NONE ? 0 : p->images.at[f.main_image].peak_ns;
    if (!peak_ns || peak_ns > end_ns || sums->past)
        peak_ns = end_ns;
    s->peak = insert(s, peak_ns, at_peak, &f);
    if (s->at.len && s->at.at[s->at.len - 1].time_ns > end_ns)
        end_ns = s->at.at[s->at.len - 1].time_ns;
    *vec_push(&s->at) =
        (struct heaptrack_step){.time_ns = end_ns, .live = sums->kept + sums->late, .share = 1};
}

/* ---- what lasts, below the curve ---- */

static void go_up(struct heaptrack_steps *s, double at_peak)
{
    double lowest = at_peak;
    for (size_t i = s->peak + 1; i-- > 0;) {
        struct heaptrack_step *it = &s->at.at[i];
        lowest = fmin(lowest, it->live);
        it->grown = i == s->peak || !(at_peak > 0) ? 1 : lowest / at_peak;
    }
}

static void go_down(struct heaptrack_steps *s, const struct heaptrack_sums *sums)
{
    const struct heaptrack_step *peak = &s->at.at[s->peak];
    double lowest = peak->live, shrunk = 0;
    for (size_t i = s->peak + 1; i < s->at.len; i++) {
        struct heaptrack_step *it = &s->at.at[i];
        bool end = i + 1 == s->at.len;
        it->grown = 1;
        it->late = end || peak->share >= 1 ? 1 : (it->share - peak->share) / (1 - peak->share);
        it->late = fmin(fmax(it->late, 0), 1);
        lowest = fmin(lowest, it->live);
        double left = sums->peak > 0 ? (lowest - sums->kept - it->late * sums->late) / sums->peak : 0;
        shrunk = end ? 1 : fmax(shrunk, 1 - fmin(fmax(left, 0), 1));
        it->shrunk = shrunk;
    }
}

void heaptrack_steps_make(struct heaptrack_steps *s, const struct profile *p,
                          const struct heaptrack_sums *sums)
{
    add_points(s, p, sums);
    add_ends(s, p, sums);
    if (!sums->past)
        vec_each (struct heaptrack_step, it, &s->at)
            it->live =
                fmin(it->live, fmax(sums->kept + sums->peak, it == s->at.at + s->at.len - 1 ? it->live : 0));
    for (size_t i = 1; i < s->at.len; i++)
        s->at.at[i].share = fmax(s->at.at[i].share, s->at.at[i - 1].share);
    go_up(s, sums->kept + sums->peak);
    go_down(s, sums);
}
