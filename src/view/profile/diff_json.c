/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/profile/diff_view.h"

#include <math.h>
#include <stdio.h>

#include "model/profile/diff_power.h"
#include "view/profile/common.h"
#include "view/profile/report_json_parts.h"

#define VERSION 3
#define HOUR_NS 3600e9

/* KEY, KEY_low and KEY_high, the interval rounded outwards. */
static void write_change(struct json *j, const char *key, const struct diff_change *c)
{
    char name[64];
    json_rounded(j, key, c->value);
    snprintf(name, sizeof(name), "%s_low", key);
    json_rounded(j, name, floor(c->interval.low));
    snprintf(name, sizeof(name), "%s_high", key);
    json_rounded(j, name, ceil(c->interval.high));
}

static void add_value(struct json *j, const struct diff_value *v)
{
    struct diff_change bytes = diff_change(v, false), count = diff_change(v, true);
    json_estimate(j, "before_bytes", &v->of[DIFF_BEFORE].bytes);
    json_estimate(j, "after_bytes", &v->of[DIFF_AFTER].bytes);
    write_change(j, "change_bytes", &bytes);
    json_flag(j, "bytes_within_noise", diff_is_noise(&bytes));
    json_estimate(j, "before_count", &v->of[DIFF_BEFORE].count);
    json_estimate(j, "after_count", &v->of[DIFF_AFTER].count);
    write_change(j, "change_count", &count);
    json_flag(j, "count_within_noise", diff_is_noise(&count));
}

static void write_value(struct json *j, const char *key, const struct diff_value *v)
{
    json_open(j, key, '{');
    add_value(j, v);
    json_close(j, '}');
}

/* As write_value(), and the smallest growth that would have been found. */
static void write_total(struct json *j, const char *key, const struct diff_value *v)
{
    json_open(j, key, '{');
    add_value(j, v);
    json_rounded(j, "smallest_growth_bytes", ceil(diff_smallest_growth(v, false)));
    double objects = diff_smallest_growth(v, true);
    json_rounded(j, "smallest_growth_count", isinf(objects) ? NAN : ceil(objects));
    json_close(j, '}');
}

static void write_totals(struct json *j, const struct diff *d)
{
    static const char *const names[] = {[ROLLUP_LIVE] = "live",
                                        [ROLLUP_PEAK] = "peak",
                                        [ROLLUP_ALLOCATED] = "allocated",
                                        [ROLLUP_TEMPORARY] = "temporary"};
    json_open(j, "total", '{');
    for (int m = 0; m < ROLLUP_METRICS; m++)
        if (diff_known(d, m))
            write_total(j, names[m], &d->total[m]);
        else
            json_null(j, names[m]);
    json_close(j, '}');
}

static void write_side(struct json *j, const char *key, const struct profile *p,
                       const struct profile_summary *f, const char *source)
{
    json_open(j, key, '{');
    json_text(j, "source", source);
    json_instant(j, "taken_ns", p->taken_ns);
    json_flag(j, "exact", profile_summary_exact(f));
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

static void write_row(struct json *j, const struct diff *d, const struct diff_row *row)
{
    enum rollup_group group = d->options.group;
    json_open(j, NULL, '{');
    json_text(j, "name", row->name);
    if (group == ROLLUP_BY_FUNCTION || group == ROLLUP_BY_OWNER) {
        json_text(j, "module", common_known(row->module));
        json_text(j, "file", common_known(row->file));
    }
    write_index(j, d, row);
    json_flag(j, "within_noise", diff_is_noise(&row->change));
    write_value(j, "self", &row->self);
    write_value(j, "inclusive", &row->inclusive);
    if (group == ROLLUP_BY_STACK)
        common_stack_json(j, d->pair->profile, row->index, !d->pair->by_name);
    json_close(j, '}');
}

static void write_rows(struct json *j, const struct diff *d, uint32_t top)
{
    size_t shown = top && top < d->rows.len ? top : d->rows.len;
    json_whole(j, "rows_in_all", d->rows.len);
    json_whole(j, "rows_unchanged", d->unchanged);
    json_open(j, "rows", '[');
    for (size_t i = 0; i < shown; i++)
        write_row(j, d, &d->rows.at[i]);
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
    struct profile_summary before = profile_summary_of(d->of[PROFILE_PAIR_BEFORE]),
                           after = profile_summary_of(d->of[PROFILE_PAIR_AFTER]);
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "allium-diff");
    json_whole(&j, "version", VERSION);
    json_text(&j, "filter", o->filter);
    json_text(&j, "group", report_json_groups[d->options.group]);
    json_text(&j, "sort", report_json_sorts[d->options.sort]);
    json_text(&j, "sorted_by", d->options.inclusive ? "inclusive" : "self");
    write_side(&j, "before", d->of[PROFILE_PAIR_BEFORE], &before, o->source[PROFILE_PAIR_BEFORE]);
    write_side(&j, "after", d->of[PROFILE_PAIR_AFTER], &after, o->source[PROFILE_PAIR_AFTER]);
    write_match(&j, d);
    write_totals(&j, d);
    json_open(&j, "conditions", '[');
    for (size_t i = 0; i < o->n_verdicts; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "condition", o->verdicts[i].condition);
        json_flag(&j, "met", o->verdicts[i].met);
        json_flag(&j, "undecided", o->verdicts[i].undecided);
        if (o->verdicts[i].undecided)
            json_whole(&j, "needed_period_bytes", o->verdicts[i].period_bytes);
        else
            json_null(&j, "needed_period_bytes");
        json_close(&j, '}');
    }
    json_close(&j, ']');
    write_rows(&j, d, o->top);
    json_close(&j, '}');
}
