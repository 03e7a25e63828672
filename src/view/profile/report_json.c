/* SPDX-License-Identifier: BSD-2-Clause */
#include <signal.h>
#include <string.h>

#include "view/profile/report_json.h"

#include <math.h>

#include "model/profile/figure_bounds.h"
#include "view/profile/common.h"
#include "view/profile/report_json_parts.h"
#include "view/text/tree.h"

#define VERSION 3

const char *const report_json_groups[] = {
    [ROLLUP_BY_STACK] = "stack",         [ROLLUP_BY_FUNCTION] = "function", [ROLLUP_BY_FILE] = "file",
    [ROLLUP_BY_DIRECTORY] = "directory", [ROLLUP_BY_MODULE] = "module",     [ROLLUP_BY_OWNER] = "owner",
    [ROLLUP_BY_THREAD] = "thread",       [ROLLUP_BY_SIZE] = "size",         [ROLLUP_BY_PROCESS] = "process",
    [ROLLUP_BY_CALLERS] = "callers",     [ROLLUP_BY_CALLEES] = "callees",
};
const char *const report_json_sorts[] = {
    [ROLLUP_SORT_LIVE] = "live",           [ROLLUP_SORT_PEAK] = "peak",
    [ROLLUP_SORT_ALLOCATED] = "allocated", [ROLLUP_SORT_ALLOCATIONS] = "allocations",
    [ROLLUP_SORT_TEMPORARY] = "temporary", [ROLLUP_SORT_AGE] = "age",
    [ROLLUP_SORT_REQUESTED] = "requested", [ROLLUP_SORT_SLACK] = "slack",
};
static const char *const states[] = {[PROFILE_IMAGE_RUNNING] = "running",
                                     [PROFILE_IMAGE_EXITED] = "exited",
                                     [PROFILE_IMAGE_ENDED] = "ended",
                                     [PROFILE_IMAGE_DETACHED] = "detached",
                                     [PROFILE_IMAGE_CUT] = "cut_short"};

void report_json_values(struct json *j, const char *key, const struct rollup_values *v)
{
    static const char *const names[][2] = {
        [ROLLUP_LIVE] = {"live_bytes", "live_objects"},
        [ROLLUP_PEAK] = {"peak_bytes", "peak_objects"},
        [ROLLUP_ALLOCATED] = {"allocated_bytes", "allocations"},
        [ROLLUP_TEMPORARY] = {"temporary_bytes", "temporary_allocations"},
    };
    json_open(j, key, '{');
    for (int m = 0; m < ROLLUP_METRICS; m++) {
        bool is_known = rollup_known(v, m);
        json_estimate(j, names[m][0], is_known ? &v->of[m].bytes : NULL);
        json_estimate(j, names[m][1], is_known ? &v->of[m].count : NULL);
    }
    json_rounded(j, "requested_bytes", rollup_known(v, ROLLUP_REQUESTED) ? v->requested_bytes : NAN);
    json_rounded(j, "slack_bytes",
                 rollup_known(v, ROLLUP_SLACK) ? rollup_sort_value(ROLLUP_SORT_SLACK, v) : NAN);
    json_whole(j, "live_samples", v->of[ROLLUP_LIVE].bytes.samples);
    bool aged = v->aged_samples && rollup_known(v, ROLLUP_AGES);
    common_whole_or_null(j, "oldest_age_ns", aged, v->oldest_ns);
    common_whole_or_null(j, "median_age_ns", aged, v->median_ns);
    json_close(j, '}');
}

void report_json_image(struct json *j, const struct profile *p, const struct profile_image *i)
{
    json_open(j, NULL, '{');
    json_hex(j, "image", i->id);
    if (i->parent_id)
        json_hex(j, "parent_image", i->parent_id);
    else
        json_null(j, "parent_image");
    json_signed(j, "pid", i->pid);
    json_signed(j, "parent_pid", i->parent_pid);
    json_text(j, "program", profile_text(p, i->comm));
    json_text(j, "exe", common_known(profile_text(p, i->exe)));
    json_text(j, "args", common_known(profile_text(p, i->args)));
    json_text(j, "state", states[i->state]);
    const char *signal = i->signal ? sigabbrev_np(i->signal) : NULL;
    struct buf name = BUF_INIT;
    buf_printf(&name, "SIG%s", signal ? signal : "RT");
    json_text(j, "signal", i->signal ? buf_str(&name) : NULL);
    buf_release(&name);
    json_instant(j, "began_ns", i->began_ns);
    json_instant(j, "taken_ns", i->taken_ns);
    json_whole(j, "off_ns", i->off_ns);
    json_instant(j, "peak_ns", i->peak_ns);
    json_rounded(j, "peak_bytes", i->past && !i->peak_ns ? NAN : i->peak_bytes);
    common_whole_or_null(j, "rss_anon_bytes", i->rss_anon_bytes != 0, i->rss_anon_bytes);
    json_close(j, '}');
}

static void write_row(struct json *j, const struct rollup *r, const struct rollup_row *row,
                      const struct tree *tree)
{
    const struct profile *p = r->profile;
    enum rollup_group group = r->options.group;
    json_open(j, NULL, '{');
    json_text(j, "name", row->name);
    if (group == ROLLUP_BY_FUNCTION || group == ROLLUP_BY_OWNER || rollup_is_tree(group)) {
        json_text(j, "module", common_known(row->module));
        json_text(j, "file", common_known(row->file));
    } else if (group == ROLLUP_BY_THREAD) {
        const struct profile_thread *t = &p->threads.at[row->index];
        json_signed(j, "pid", p->images.at[t->image].pid);
        json_text(j, "thread", common_known(profile_text(p, t->name)));
        common_whole_or_null(j, "tid", t->tid != 0, (uint64_t)t->tid);
    } else if (group == ROLLUP_BY_SIZE) {
        json_whole(j, "least_size_bytes", row->index ? 1ull << row->index : 0);
        json_whole(j, "most_size_bytes", (row->index < 63 ? 2ull << row->index : 0) - 1);
    } else if (group == ROLLUP_BY_PROCESS) {
        json_hex(j, "image", p->images.at[row->index].id);
        json_signed(j, "pid", p->images.at[row->index].pid);
    }
    if (tree) {
        bool below = row->parent != PROFILE_NONE;
        json_whole(j, "depth", row->depth);
        common_whole_or_null(j, "parent_row", below, below ? tree->place[row->parent] : 0);
    }
    report_json_values(j, "self", &row->self);
    report_json_values(j, "inclusive", &row->inclusive);
    if (group == ROLLUP_BY_STACK)
        common_stack_json(j, p, row->index, true);
    json_close(j, '}');
}

static void write_tree(struct json *j, const struct rollup *r, uint32_t top)
{
    struct tree t;
    tree_init(&t, r, top, false);
    for (size_t i = 0; i < t.n; i++)
        write_row(j, r, &r->rows.at[t.shown[i]], &t);
    tree_release(&t);
}

void report_json_lost(struct json *j, const struct profile *p, const struct profile_summary *f)
{
    json_open(j, "lost", '{');
    for (int k = 0; k < PROFILE_LOSSES; k++)
        json_whole(j, profile_summary_losses[k].key, f->losses[k]);
    json_whole(j, "torn_samples", f->torn_samples);
    json_whole(j, "operations_under_way", f->under_way);
    json_flag(j, "inconsistent", f->inconsistent);
    json_text(j, "ledger_full", common_known(f->full));
    json_whole(j, "images_dropped", p->images_dropped);
    json_rounded(j, "images_dropped_peak_bytes", p->images_dropped_peak_bytes);
    json_whole(j, "images_unread", f->unread);
    json_close(j, '}');
}

void report_json_unobserved(struct json *j, const struct profile *p)
{
    json_open(j, "unobserved", '[');
    vec_each (const struct profile_unobserved, u, &p->unobserved) {
        json_open(j, NULL, '{');
        json_text(j, "program", common_known(profile_text(p, u->program)));
        json_text(j, "reason", profile_text(p, u->reason));
        json_whole(j, "processes", u->processes);
        json_close(j, '}');
    }
    json_close(j, ']');
}

void report_json_whole(struct json *j, const struct profile *p, const struct profile_summary *f)
{
    report_json_lost(j, p, f);
    report_json_unobserved(j, p);
    json_open(j, "cost", '{');
    json_whole(j, "samples", f->samples);
    json_whole(j, "live_samples", f->live_samples);
    common_whole_or_null(j, "ledger_bytes", !f->past, f->ledger_bytes);
    json_whole(j, "ledger_limit_bytes", f->ledger_limit_bytes);
    common_whole_or_null(j, "cpu_ns", !f->past, f->cold_ns);
    json_whole(j, "observed_ns", f->observed_ns);
    common_whole_or_null(j, "recorder_cpu_ns", p->recorder_cpu_ns, p->recorder_cpu_ns);
    common_whole_or_null(j, "recorder_peak_bytes", p->recorder_cpu_ns, p->recorder_peak_bytes);
    json_close(j, '}');
    bool is_known = f->resident.rss_anon_bytes != 0;
    json_open(j, "resident", '{');
    common_whole_or_null(j, "rss_anon_bytes", is_known, f->resident.rss_anon_bytes);
    json_estimate(j, "live_bytes", is_known ? &f->resident.live : NULL);
    json_rounded(j, "slack_bytes",
                 is_known && !f->past && !f->resident.slack_unknown ? f->resident.slack_bytes : NAN);
    json_close(j, '}');
}

/* Null: of programs, of a moment in the past, and of a recording that was cut short. */
static void report_json_kernel(struct json *j, const struct profile *p, const struct profile_summary *f)
{
    const struct profile_kernel *k = &p->kernel;
    if (!k->known || f->past) {
        json_null(j, "kernel");
        return;
    }
    json_open(j, "kernel", '{');
    json_text(j, "filter", common_known(profile_text(p, k->filter)));
    json_whole(j, "null_frees", k->null_frees);
    json_whole(j, "frees_without_event", k->frees_without_event);
    json_whole(j, "frees_of_unknown", k->older_frees);
    json_whole(j, "frees_after_loss", k->frees_after_loss);
    json_whole(j, "frees_unexplained", k->unexplained_frees);
    common_whole_or_null(j, "settle_ns", k->settle_ns, k->settle_ns);
    common_whole_or_null(j, "settled_objects", k->settle_ns, k->settled_objects);
    common_whole_or_null(j, "settled_bytes", k->settle_ns, k->settled_bytes);
    json_close(j, '}');
}

/* Null: it is not of a trace. */
static void report_json_trace(struct json *j, const struct profile *p)
{
    if (!p->trace.known) {
        json_null(j, "trace");
        return;
    }
    json_open(j, "trace", '{');
    json_text(j, "where", common_known(profile_text(p, p->trace.filter)));
    json_text(j, "clock", common_known(profile_text(p, p->trace.clock)));
    json_flag(j, "bounds", figure_bounds_of(p, ROLLUP_LIVE));
    json_whole(j, "early_frees", p->trace.early_frees);
    json_signed(j, "wall_step_ns", p->trace.wall_step_ns);
    json_close(j, '}');
}

void report_json_write(struct sink *out, const struct rollup *r, const struct report_json_options *o)
{
    const struct profile *p = r->profile;
    struct profile_summary f = profile_summary_of(p);
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "allium-report");
    json_whole(&j, "version", VERSION);
    json_text(&j, "source", o->source);
    json_text(&j, "filter", o->filter);
    json_text(&j, "group", report_json_groups[r->options.group]);
    json_text(&j, "function", rollup_is_tree(r->options.group) ? r->options.focus : NULL);
    json_text(&j, "sort", report_json_sorts[r->options.sort]);
    json_text(&j, "sorted_by", r->options.inclusive ? "inclusive" : "self");
    json_instant(&j, "taken_ns", p->taken_ns);
    json_flag(&j, "exact", profile_summary_exact(&f));
    common_periods_json(&j, p, &f);
    struct rollup_values total = r->total;
    if (f.main_image == PROFILE_NONE && !f.period_high)
        total.unknown = ~0u; /* there is no upper bound for unobserved memory */
    report_json_values(&j, "total", &total);
    json_open(&j, "processes", '[');
    vec_each (const struct profile_image, i, &p->images)
        report_json_image(&j, p, i);
    json_close(&j, ']');
    json_whole(&j, "rows_in_all", r->rows.len);
    json_open(&j, "rows", '[');
    if (rollup_is_tree(r->options.group))
        write_tree(&j, r, o->top);
    else
        for (size_t i = 0; i < r->rows.len && (!o->top || i < o->top); i++)
            write_row(&j, r, &r->rows.at[i], NULL);
    json_close(&j, ']');
    report_json_whole(&j, p, &f);
    report_json_kernel(&j, p, &f);
    report_json_trace(&j, p);
    json_close(&j, '}');
}
