/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/svg_parts.h"

#include <math.h>
#include <stdlib.h>

#include "base/units.h"
#include "model/profile/moments.h"
#include "view/page/html.h"

#define HEIGHT 360.0
#define LEFT   80.0
#define BOTTOM 30.0
#define RIGHT  20.0
#define LINES  6    /* at most, of the grid */
#define POINTS 1000 /* at most, of a curve */
#define TIMES  500  /* at most, of the band */
#define MARKS  12   /* at most: of the processes with the highest peaks */

/* All processes together, at a time. */
struct sum {
    uint64_t time_ns;
    double live_bytes, rss_bytes;
};
struct sums VEC(struct sum);

static int by_time(const void *a, const void *b)
{
    const struct profile_point *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns > y->time_ns ? 1 : -1;
    return (x->image > y->image) - (x->image < y->image);
}

/* At the time of each point: the sum of what each process had last, without those that have ended. */
static void add_up(struct sums *out, const struct profile *p)
{
    const size_t n = p->points.len, images = p->images.len;
    struct profile_point *points = mem_array(n + 1, sizeof(*points));
    struct sum *last = mem_array(images + 1, sizeof(*last));
    for (size_t i = 0; i < n; i++)
        points[i] = p->points.at[i];
    qsort(points, n, sizeof(*points), by_time);
    for (size_t i = 0; i < n; i++) {
        struct sum s = {.time_ns = points[i].time_ns};
        last[points[i].image] =
            (struct sum){.live_bytes = points[i].live_bytes, .rss_bytes = (double)points[i].rss_anon_bytes};
        for (size_t k = 0; k < images; k++)
            if (!moments_image_ended(&p->images.at[k]) || p->images.at[k].taken_ns >= s.time_ns ||
                k == points[i].image) {
                s.live_bytes += last[k].live_bytes;
                s.rss_bytes += last[k].rss_bytes;
            }
        const bool again = i && points[i - 1].time_ns == s.time_ns; /* of several images */
        *(again ? &out->at[out->len - 1] : vec_push(out)) = s;
    }
    free(points);
    free(last);
}

struct axes {
    uint64_t first_ns, last_ns;
    double most_bytes;
};

static double x_of(const struct axes *a, uint64_t time_ns)
{
    const double span = (double)(a->last_ns - a->first_ns);
    return LEFT + (span > 0 ? (double)(time_ns - a->first_ns) / span : 0) * (SVG_WIDTH - LEFT - RIGHT);
}

static double y_of(const struct axes *a, double bytes)
{
    return SVG_TOP + HEIGHT - BOTTOM - bytes / a->most_bytes * (HEIGHT - BOTTOM);
}

/* The smallest of 1, 2, 5, 10 ... times a unit with which there are at most LINES steps. */
static double step_of(double most, double unit)
{
    double step = unit;
    for (int i = 0; most / step > LINES; i++)
        step *= i % 3 == 1 ? 2.5 : 2;
    return step;
}

static void add_grid(struct buf *b, const struct axes *a)
{
    char text[UNITS_TEXT_BYTES];
    double unit = 1;
    while (unit * 1024 * LINES <= a->most_bytes)
        unit *= 1024;
    const double step = step_of(a->most_bytes, unit);
    for (double at = 0; at <= a->most_bytes; at += step)
        buf_printf(b,
                   "<path class=\"r\" d=\"M%.0f %.1fH%.0f\"/><text x=\"%.0f\" y=\"%.1f\" "
                   "text-anchor=\"end\">%s</text>\n",
                   LEFT, y_of(a, at), SVG_WIDTH - RIGHT, LEFT - 6, y_of(a, at) + 4,
                   units_format_size(text, at));
    const double span = (double)(a->last_ns - a->first_ns), tick = step_of(span, 1e6);
    for (double at = 0; at <= span; at += tick)
        buf_printf(b, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%s</text>\n",
                   x_of(a, a->first_ns + (uint64_t)at), SVG_TOP + HEIGHT - 10,
                   units_format_duration(text, at));
}

static double value_of(const struct sum *s, bool rss)
{
    return rss ? s->rss_bytes : s->live_bytes;
}

static void add_point(struct buf *b, const struct axes *a, const struct sum *s, bool rss)
{
    buf_printf(b, " %.1f,%.1f", x_of(a, s->time_ns), y_of(a, value_of(s, rss)));
}

static void add_curve(struct buf *b, const struct axes *a, const struct sums *sums, bool rss)
{
    const size_t stride = sums->len / (POINTS / 2) + 1; /* two points of each: the lowest and the highest */
    for (size_t first = 0; first < sums->len; first += stride) {
        size_t low = first, high = first;
        for (size_t i = first; i < sums->len && i < first + stride; i++) {
            low = value_of(&sums->at[i], rss) < value_of(&sums->at[low], rss) ? i : low;
            high = value_of(&sums->at[i], rss) > value_of(&sums->at[high], rss) ? i : high;
        }
        add_point(b, a, &sums->at[low < high ? low : high], rss);
        if (low != high)
            add_point(b, a, &sums->at[low < high ? high : low], rss);
    }
}

/* The 95 % interval of live bytes, where it is known: at the stored moments. */
static void add_band(struct buf *b, const struct axes *a, const struct moments *m)
{
    buf_addstr(b, "<polygon class=\"a\" points=\"");
    for (size_t i = 0; i < 2 * m->times.len; i++) {
        const bool upper = i < m->times.len;
        const struct moments_time *t = &m->times.at[upper ? i : 2 * m->times.len - 1 - i];
        const struct interval live = estimate_interval(&t->live_bytes);
        buf_printf(b, "%s%.1f,%.1f", i ? " " : "", x_of(a, t->time_ns),
                   y_of(a, upper ? live.high : live.low));
    }
    buf_addstr(b, "\"><title>95 % interval of live bytes</title></polygon>\n");
}

static int by_peak(const void *a, const void *b)
{
    const struct profile_image *x = *(const struct profile_image *const *)a,
                               *y = *(const struct profile_image *const *)b;
    if (x->peak_bytes < y->peak_bytes || x->peak_bytes > y->peak_bytes)
        return x->peak_bytes < y->peak_bytes ? 1 : -1;
    return (x > y) - (x < y);
}

static void add_mark(struct buf *b, const struct axes *a, uint64_t time_ns, unsigned line, const char *text)
{
    const double x = x_of(a, time_ns);
    const bool left = x > SVG_WIDTH * 0.8;
    if (time_ns < a->first_ns || time_ns > a->last_ns)
        return;
    buf_printf(b,
               "<path class=\"f\" stroke-dasharray=\"4 3\" d=\"M%.1f %.0fV%.0f\"/>"
               "<text x=\"%.1f\" y=\"%.0f\"%s>",
               x, (double)SVG_TOP, SVG_TOP + HEIGHT - BOTTOM, x + (left ? -4 : 4),
               SVG_TOP + 10.0 + 13.0 * line, left ? " text-anchor=\"end\"" : "");
    html_add_text(b, text);
    buf_addstr(b, "</text>\n");
}

/* When each process had its peak, and if a signal ended it, when; and other events. */
static void add_marks(struct buf *b, const struct axes *a, const struct profile *p)
{
    const struct profile_image **order = mem_array(p->images.len + 1, sizeof(*order));
    unsigned line = 0;
    for (size_t i = 0; i < p->images.len; i++)
        order[i] = &p->images.at[i];
    qsort(order, p->images.len, sizeof(*order), by_peak);
    for (size_t i = 0; i < p->images.len && i < MARKS; i++) {
        struct buf of = BUF_INIT, text = BUF_INIT;
        if (p->images.len > 1)
            buf_printf(&of, " of %s", profile_text(p, order[i]->comm));
        if (p->images.len > 1 && !profile_is_kernel(order[i]))
            buf_printf(&of, " (%d)", order[i]->pid);
        buf_printf(&text, "peak%s", buf_str(&of));
        if (order[i]->peak_ns)
            add_mark(b, a, order[i]->peak_ns, line++, buf_str(&text));
        buf_reset(&text);
        buf_printf(&text, "end%s by signal %d", buf_str(&of), order[i]->signal);
        if (order[i]->signal)
            add_mark(b, a, order[i]->taken_ns, line++, buf_str(&text));
        buf_release(&of);
        buf_release(&text);
    }
    for (size_t i = 0; i < p->marks.len && i < MARKS; i++)
        add_mark(b, a, p->marks.at[i].time_ns, line++, profile_text(p, p->marks.at[i].text));
    free(order);
}

static void draw(struct buf *b, const struct sums *sums, const struct profile *p, const struct moments *m)
{
    struct axes a = {sums->at[0].time_ns, sums->at[sums->len - 1].time_ns, 1};
    bool any_rss = false;
    vec_each (const struct moments_time, t, &m->times)
        a.most_bytes = fmax(a.most_bytes, estimate_interval(&t->live_bytes).high * 1.05);
    vec_each (const struct sum, s, sums) {
        a.most_bytes = fmax(a.most_bytes, fmax(s->live_bytes, s->rss_bytes) * 1.05);
        any_rss = any_rss || s->rss_bytes > 0;
    }
    add_grid(b, &a);
    if (m->times.len > 1)
        add_band(b, &a, m);
    buf_addstr(b, "<polyline class=\"l\" stroke-width=\"2\" points=\"");
    add_curve(b, &a, sums, false);
    buf_addstr(b, "\"><title>live bytes</title></polyline>\n");
    if (any_rss) {
        buf_addstr(b, "<polyline class=\"f\" points=\"");
        add_curve(b, &a, sums, true);
        buf_addstr(b, "\"><title>anonymous resident memory</title></polyline>\n");
    }
    add_marks(b, &a, p);
}

void svg_timeline_write(struct sink *out, const struct profile *p, const struct svg_options *o)
{
    struct sums sums = {0};
    struct moments m;
    struct buf b = BUF_INIT;
    add_up(&sums, p);
    moments_of(&m, p, (uint32_t)(p->moments.len / TIMES + 1));
    svg_begin(
        &b, SVG_TOP + HEIGHT, o->title,
        m.times.len > 1
            ? "live bytes over time, with the 95 % interval; the thin line is the anonymous resident memory"
        : sums.len ? "live bytes over time; the thin line is the anonymous resident memory"
                   : "the recording has no points in time");
    if (sums.len)
        draw(&b, &sums, p, &m);
    moments_release(&m);
    svg_end(&b);
    sink_write(out, b.data, b.len);
    buf_release(&b);
    vec_release(&sums);
}
