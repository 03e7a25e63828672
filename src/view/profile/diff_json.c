/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/profile/diff_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/profile/diff_power.h"
#include "model/profile/figure_bounds.h"
#include "view/profile/common.h"
#include "view/profile/report_json_parts.h"

#define VERSION 3
#define HOUR_NS 3600e9

/* The end of keys of figures that were divided. */
static const char *const per_keys[] = {[DIFF_PER_NOTHING] = "",
                                       [DIFF_PER_BOOT] = "_per_boot",
                                       [DIFF_PER_EVENT] = "_per_event",
                                       [DIFF_PER_SECOND] = "_per_s"};

/* What the writing of values needs. */
struct values {
    struct json *j;
    const struct diff *d;
    const char *per;
};

/* Writes "change_bytes_per_s_low" for "change_bytes" and "_low". Whole numbers, except where figures were divided or
 * are means. */
static void write_number(const struct values *w, const char *key, const char *end, double value,
                         double (*round)(double))
{
    char name[96];
    snprintf(name, sizeof(name), "%s%s%s", key, w->per, end);
    if (w->d->by_capture)
        json_real(w->j, name, value);
    else
        json_rounded(w->j, name, round(value));
}

/* KEY, KEY_low and KEY_high, the interval rounded outwards. */
static void write_figure(const struct values *w, const char *key, double value, struct interval i)
{
    write_number(w, key, "", value, nearbyint);
    write_number(w, key, "_low", i.low, floor);
    write_number(w, key, "_high", i.high, ceil);
}

static void write_side_value(const struct values *w, const char *key, const struct diff_value *v,
                             enum diff_part part, bool count)
{
    const struct estimate *e = count ? &v->of[part].count : &v->of[part].bytes;
    write_figure(w, key, e->value, diff_side_interval(v, part, count));
}

/* The values of the captures of a side, if there are several. */
static void write_captures(const struct values *w, const char *key, const struct diff_value *v,
                           enum profile_pair_side side, bool count)
{
    const double *of = v->captures[count ? DIFF_COUNT : DIFF_BYTES];
    char name[96];
    if (!of)
        return;
    snprintf(name, sizeof(name), "%s%s", key, w->per);
    json_open(w->j, name, '[');
    for (uint32_t i = 0; i < v->n[side]; i++)
        json_real(w->j, NULL, of[i + (side == PROFILE_PAIR_AFTER ? v->n[PROFILE_PAIR_BEFORE] : 0)]);
    json_close(w->j, ']');
}

static void add_value(const struct values *w, const struct diff_value *v)
{
    struct diff_change bytes = diff_change(v, false), count = diff_change(v, true);
    write_side_value(w, "before_bytes", v, DIFF_BEFORE, false);
    write_side_value(w, "after_bytes", v, DIFF_AFTER, false);
    write_figure(w, "change_bytes", bytes.value, bytes.interval);
    json_flag(w->j, "bytes_within_noise", diff_is_noise(&bytes));
    write_side_value(w, "before_count", v, DIFF_BEFORE, true);
    write_side_value(w, "after_count", v, DIFF_AFTER, true);
    write_figure(w, "change_count", count.value, count.interval);
    json_flag(w->j, "count_within_noise", diff_is_noise(&count));
    write_captures(w, "before_captures_bytes", v, PROFILE_PAIR_BEFORE, false);
    write_captures(w, "after_captures_bytes", v, PROFILE_PAIR_AFTER, false);
    write_captures(w, "before_captures_count", v, PROFILE_PAIR_BEFORE, true);
    write_captures(w, "after_captures_count", v, PROFILE_PAIR_AFTER, true);
}

static void write_value(const struct values *w, const char *key, const struct diff_value *v)
{
    json_open(w->j, key, '{');
    add_value(w, v);
    json_close(w->j, '}');
}

/* As write_value(), and the smallest growth that would have been found. */
static void write_total(const struct values *w, const char *key, const struct diff_value *v)
{
    double objects = diff_smallest_growth(v, true);
    json_open(w->j, key, '{');
    add_value(w, v);
    write_number(w, "smallest_growth_bytes", "", diff_smallest_growth(v, false), ceil);
    write_number(w, "smallest_growth_count", "", isinf(objects) ? NAN : objects, ceil);
    json_close(w->j, '}');
}

static void write_totals(const struct values *w)
{
    static const char *const names[] = {[ROLLUP_LIVE] = "live",
                                        [ROLLUP_PEAK] = "peak",
                                        [ROLLUP_ALLOCATED] = "allocated",
                                        [ROLLUP_TEMPORARY] = "temporary"};
    json_open(w->j, "total", '{');
    for (int m = 0; m < ROLLUP_METRICS; m++)
        if (diff_known(w->d, m))
            write_total(w, names[m], &w->d->total[m]);
        else
            json_null(w->j, names[m]);
    json_close(w->j, '}');
}

/* The sources of several captures, and what their figures were divided by. */
static void write_sources(struct json *j, const struct diff *d, enum profile_pair_side side,
                          const char *const *sources)
{
    const struct diff_side *of = &d->side[side];
    json_open(j, "captures", '[');
    for (uint32_t i = 0; sources && i < of->n; i++) {
        json_open(j, NULL, '{');
        json_text(j, "source",
                  sources[i + (side == PROFILE_PAIR_AFTER ? d->side[PROFILE_PAIR_BEFORE].n : 0)]);
        json_instant(j, "taken_ns", of->captures[i]->taken_ns);
        json_real(j, "divisor", of->divisors ? of->divisors[i] : 1);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void write_side(struct json *j, const char *key, const struct diff *d, enum profile_pair_side side,
                       const struct profile_summary *f, const struct diff_view_options *o)
{
    const struct profile *p = d->of[side];
    json_open(j, key, '{');
    json_text(j, "source", o->source[side]);
    write_sources(j, d, side, o->captures);
    json_instant(j, "taken_ns", p->taken_ns);
    json_flag(j, "exact", profile_summary_exact(f));
    json_flag(j, "bounds", figure_bounds_of_side(d, side, ROLLUP_LIVE));
    common_periods_json(j, p, f);
    json_open(j, "processes", '[');
    vec_each (const struct profile_image, i, &p->images)
        report_json_image(j, p, i);
    json_close(j, ']');
    report_json_lost(j, p, f);
    report_json_unobserved(j, p);
    json_close(j, '}');
}

/* Writes index and names of a row that both sources know. Threads and processes matched by name have no number. */
static void write_index(struct json *j, const struct diff *d, const struct diff_row *row)
{
    const struct profile *p = d->pair->profile;
    const struct profile_thread *t = NULL;
    switch (d->options.group) {
    case ROLLUP_BY_SIZE:
        json_whole(j, "least_size_bytes", row->index ? 1ull << row->index : 0);
        json_whole(j, "most_size_bytes", (row->index < 63 ? 2ull << row->index : 0) - 1);
        return;
    case ROLLUP_BY_THREAD:
        t = &p->threads.at[row->index];
        break;
    case ROLLUP_BY_PROCESS:
        break;
    default:
        return;
    }
    uint32_t image = t ? t->image : row->index;
    bool same = d->pair->images.at[image].same;
    if (same)
        json_signed(j, "pid", p->images.at[image].pid);
    else
        json_null(j, "pid");
    if (t && same && t->tid)
        json_signed(j, "tid", t->tid);
    else if (t)
        json_null(j, "tid");
}

static void write_row(const struct values *w, const struct diff_row *row)
{
    struct json *j = w->j;
    const struct diff *d = w->d;
    enum rollup_group group = d->options.group;
    json_open(j, NULL, '{');
    json_text(j, "name", row->name);
    if (group == ROLLUP_BY_FUNCTION || group == ROLLUP_BY_OWNER) {
        json_text(j, "module", common_known(row->module));
        json_text(j, "file", common_known(row->file));
    }
    write_index(j, d, row);
    json_flag(j, "within_noise", diff_is_noise(&row->change));
    write_value(w, "self", &row->self);
    write_value(w, "inclusive", &row->inclusive);
    if (group == ROLLUP_BY_STACK)
        common_stack_json(j, d->pair->profile, row->index, !d->pair->by_name);
    json_close(j, '}');
}

static void write_rows(const struct values *w, uint32_t top)
{
    struct json *j = w->j;
    const struct diff *d = w->d;
    size_t shown = top && top < d->rows.len ? top : d->rows.len;
    json_whole(j, "rows_in_all", d->rows.len);
    json_whole(j, "rows_unchanged", d->unchanged);
    json_open(j, "rows", '[');
    for (size_t i = 0; i < shown; i++)
        write_row(w, &d->rows.at[i]);
    json_close(j, ']');
}

/* Writes the facts about the whole comparison. */
static void write_match(struct json *j, const struct diff *d)
{
    int64_t apart_ns = diff_apart_ns(d);
    bool moments = diff_is_of_moments(d);
    uint32_t same = 0;
    vec_each (const struct profile_pair_image, i, &d->pair->images)
        same += i->same;
    json_whole(j, "images_in_both", same);
    json_flag(j, "matched_by_name", d->pair->by_name);
    if (same)
        json_signed(j, "apart_ns", apart_ns);
    else
        json_null(j, "apart_ns");
    double change = diff_change(&d->total[ROLLUP_LIVE], false).value;
    json_rounded(j, "live_bytes_per_hour",
                 moments && apart_ns > 0 ? change * HOUR_NS / (double)apart_ns : NAN);
}

void diff_json_write(struct sink *out, const struct diff *d, const struct diff_view_options *o)
{
    struct json j = {.out = out};
    const struct values w = {&j, d, per_keys[o->per]};
    struct profile_summary before = profile_summary_of(d->of[PROFILE_PAIR_BEFORE]),
                           after = profile_summary_of(d->of[PROFILE_PAIR_AFTER]);
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "allium-diff");
    json_whole(&j, "version", VERSION);
    json_text(&j, "filter", o->filter);
    json_text(&j, "group", report_json_groups[d->options.group]);
    json_text(&j, "sort", report_json_sorts[d->options.sort]);
    json_text(&j, "sorted_by", d->options.inclusive ? "inclusive" : "self");
    json_text(&j, "per", o->per ? per_keys[o->per] + strlen("_per_") : NULL);
    write_side(&j, "before", d, PROFILE_PAIR_BEFORE, &before, o);
    write_side(&j, "after", d, PROFILE_PAIR_AFTER, &after, o);
    write_match(&j, d);
    if (d->spread)
        json_real(&j, "row_interval_percent", 100 * (1 - 2 * d->tail));
    else
        json_null(&j, "row_interval_percent");
    write_totals(&w);
    json_open(&j, "conditions", '[');
    for (size_t i = 0; i < o->n_verdicts; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "condition", o->verdicts[i].condition);
        json_flag(&j, "met", o->verdicts[i].met);
        json_flag(&j, "undecided", o->verdicts[i].undecided);
        if (o->verdicts[i].period_bytes)
            json_whole(&j, "needed_period_bytes", o->verdicts[i].period_bytes);
        else
            json_null(&j, "needed_period_bytes");
        if (o->verdicts[i].captures)
            json_whole(&j, "needed_captures", o->verdicts[i].captures);
        else
            json_null(&j, "needed_captures");
        json_close(&j, '}');
    }
    json_close(&j, ']');
    write_rows(&w, o->top);
    json_close(&j, '}');
}
