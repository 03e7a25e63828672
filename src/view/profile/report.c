/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/profile/report.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "model/profile/figure_bounds.h"
#include "model/trace/clock_kind.h"
#include "view/profile/common.h"
#include "view/profile/report_parts.h"

#define LARGEST_PROCESSES 3

static const char *signal_name(int signal)
{
    const char *name = sigabbrev_np(signal);
    return name ? name : "RT"; /* a real-time signal has no name of its own */
}

void report_add_title(struct buf *b, const struct profile *p, const struct profile_summary *f,
                      const struct text_style *style)
{
    static const char *const ends[] = {
        [PROFILE_IMAGE_RUNNING] = "running",
        [PROFILE_IMAGE_EXITED] = "exited",
        [PROFILE_IMAGE_ENDED] = "ended without exit handlers (killed, _exit or exec)",
        [PROFILE_IMAGE_DETACHED] = "detached",
        [PROFILE_IMAGE_CUT] = "running when last seen; the recording was cut short",
    };
    if (f->main_image == PROFILE_NONE) {
        buf_addstr(b, p->trace.is_part ? "nothing was allocated"
                      : profile_summary_exact(f) || p->unobserved.len
                          ? "nothing was sampled"
                          : "nothing was sampled: run again with --period 1");
        return;
    }
    const struct profile_image *i = &p->images.at[f->main_image];
    if (profile_is_of_kernel(p)) {
        buf_printf(b, "the kernel, %s",
                   i->state == PROFILE_IMAGE_RUNNING ? "still recorded"
                   : i->state == PROFILE_IMAGE_CUT   ? "recorded; the recording was cut short"
                                                     : "recorded");
    } else if (p->images.len > 1) {
        buf_printf(b, "%zu process images, %u running", p->images.len, f->running + f->cut);
        buf_addstr(b, f->cut ? " when last seen; the recording was cut short" : "");
        if (f->signal)
            buf_printf(b, ", one killed by SIG%s", signal_name(f->signal));
    } else if (i->signal) {
        text_add_name(b, style, profile_text(p, i->comm));
        buf_printf(b, " (pid %d), killed by SIG%s", i->pid, signal_name(i->signal));
    } else {
        text_add_name(b, style, profile_text(p, i->comm));
        buf_printf(b, " (pid %d), %s", i->pid, ends[i->state]);
    }
    buf_addstr(b, f->past ? " then" : "");
}

void report_add_period(struct buf *b, const struct profile_summary *f, const struct text_style *style)
{
    char low[UNITS_TEXT_BYTES], high[UNITS_TEXT_BYTES];
    units_format_size(low, (double)f->period_low);
    units_format_size(high, (double)f->period_high);
    if (!f->period_high)
        buf_addstr(b, "no sample is stored"); /* and the period is not known */
    else if (profile_summary_exact(f) && f->losses[PROFILE_LOST_SAMPLES]) {
        buf_addstr(b, "exact but for ");
        text_add_number(b, f->losses[PROFILE_LOST_SAMPLES], "lost event");
    } else if (profile_summary_exact(f))
        buf_addstr(b, "exact: every allocation");
    else if (f->period_low == 1)
        buf_printf(b, "partly exact, partly sampled every %s on average", high);
    else if (f->period_low == f->period_high)
        buf_printf(b, "sampled every %s on average", high);
    else
        buf_printf(b, "sampled every %s %s %s on average (the period was changed)", low, text_dash(style),
                   high);
}

void report_add_nothing(struct buf *b, const struct rollup *r, const struct profile_summary *f,
                        const struct text_style *style)
{
    char most[UNITS_TEXT_BYTES];
    if (r->profile->unobserved.len) { /* there is no upper bound for their memory */
        buf_addstr(b,
                   "some processes could not be observed, and the memory that they allocated is not known. ");
        buf_addstr(b, "The others allocated nothing, or too little for a sample to be likely.");
        return;
    }
    if (f->period_high)
        report_add_period(b, f, style);
    if (r->profile->trace.is_part) {
        buf_addstr(b, ", but there was none: no process had allocated yet.");
        return;
    }
    if (profile_summary_exact(f)) {
        buf_addstr(b, ", but there was none");
    } else {
        if (f->period_high)
            buf_printf(b, ": with 95 %% certainty the program allocated at most %s, ",
                       units_format_size(most, estimate_interval(&r->total.of[ROLLUP_ALLOCATED].bytes).high));
        else
            buf_addstr(b, "the program allocated ");
        buf_addstr(b, "too little for a sample to be likely");
    }
    buf_addstr(b, "; or it does not use malloc, or started without the agent because its environment was "
                  "cleared (env -i, sudo), or found no room for a ledger.");
}

void report_add_peak(struct buf *b, const struct rollup *r, const struct text_style *style)
{
    char after[UNITS_TEXT_BYTES];
    const struct profile_image *i = r->profile->images.at;
    if (!rollup_known(&r->total, ROLLUP_PEAK)) {
        buf_addch(b, '-');
        return;
    }
    common_mark(b, figure_bounds_of(r->profile, ROLLUP_PEAK));
    text_add_figure(b, style, &r->total.of[ROLLUP_PEAK].bytes, TEXT_BYTES);
    if (r->profile->images.len > 1)
        buf_addstr(b, profile_is_of_kernel(r->profile) ? ", objects and pages each at their own peak"
                                                       : ", each process at its own peak");
    if (r->profile->images.len != 1 || !i->peak_ns)
        return;
    buf_addstr(b, " at ");
    text_add_clock(b, i->peak_ns);
    if (text_instant_known(i->began_ns) && i->peak_ns >= i->began_ns)
        buf_printf(b, ", %s after the start",
                   units_format_duration(after, (double)(i->peak_ns - i->began_ns)));
}

const char *report_live_word(const struct profile_summary *f)
{
    if (f->past)
        return "live then";
    if (f->cut)
        return "last seen";
    if (f->running && !f->exited && !f->ended)
        return "live now";
    if (f->exited && !f->running && !f->ended)
        return "at exit";
    return f->running ? "live" : "at the end";
}

static void write_title(struct sink *out, const struct profile *p, const struct profile_summary *f,
                        const struct text_style *style)
{
    struct buf b = BUF_INIT, line = BUF_INIT;
    report_add_title(&b, p, f, style);
    text_add_short(&line, style, buf_str(&b), style->columns ? style->columns : SIZE_MAX);
    sink_printf(out, "%s%s%s\n", text_begin(style, TEXT_STRONG), buf_str(&line),
                text_end(style, TEXT_STRONG));
    buf_release(&b);
    buf_release(&line);
}

/* Writes a line of the header, shortened if it is too wide. Empties the buffer. */
static void write_line(struct sink *out, const struct text_style *style, struct buf *b)
{
    struct buf line = BUF_INIT;
    text_add_short(&line, style, buf_str(b), style->columns ? style->columns - 2 : SIZE_MAX);
    if (b->len)
        sink_printf(out, "  %s\n", buf_str(&line));
    buf_release(&line);
    buf_reset(b);
}

static void write_when(struct sink *out, const struct profile_summary *f, const struct text_style *style,
                       struct buf *b)
{
    char took[UNITS_TEXT_BYTES];
    buf_addstr(b, f->past ? "began " : "");
    text_add_instant(b, f->began_ns);
    if (text_instant_known(f->began_ns) && f->taken_ns > f->began_ns)
        buf_printf(b, f->past ? "; shown as of %s later" : ", for %s",
                   units_format_duration(took, (double)(f->taken_ns - f->began_ns)));
    write_line(out, style, b);
    if (f->past)
        text_paragraph(out, style, "", 2,
                       "ages (-), temporary memory and later peaks are not known for a past moment");
}

/* Of a trace without times. */
static void write_clock(struct sink *out, const struct profile *p, const struct text_style *style)
{
    const char *clock = profile_text(p, p->trace.clock);
    if (clock_kind_interpolates(clock))
        text_paragraph(
            out, style, "", 2,
            "times of some events only, the others are interpolated (--clock every:N): what was allocated is "
            "exact; what was freed, live and peak, ages and lifetimes are estimates (~)");
    else if (*clock)
        text_paragraph(
            out, style, "", 2,
            strcmp(clock, "none")
                ? "without times (--clock counter): ages, lifetimes, single objects and recent frees are not "
                  "known"
                : "without times and without a sure order (--clock none): what was allocated is exact; "
                  "what was freed, live and peak are estimates (~); ages, lifetimes, single objects and "
                  "recent frees are not known");
}

static void write_header(struct sink *out, const struct rollup *r, const struct profile_summary *f,
                         const struct report_options *o)
{
    const struct profile *p = r->profile;
    struct buf b = BUF_INIT;
    write_title(out, p, f, &o->style);
    if (o->source)
        text_add_name(&b, &o->style, o->source);
    write_line(out, &o->style, &b);
    if (f->main_image != PROFILE_NONE) {
        const char *args = profile_text(p, p->images.at[f->main_image].args);
        if (*args && p->images.len > 1)
            buf_addstr(&b, "largest: ");
        /* the peaks do not tell which process was the largest at that time */
        if (!f->past || p->images.len == 1)
            text_add_name(&b, &o->style, args);
        write_line(out, &o->style, &b);
        write_when(out, f, &o->style, &b);
    }
    if (f->main_image != PROFILE_NONE)
        report_add_period(&b, f, &o->style);
    else
        report_add_nothing(&b, r, f, &o->style);
    if (f->main_image != PROFILE_NONE && f->period_high && !profile_summary_exact(f))
        buf_addstr(&b, "; in brackets the 95 % interval");
    text_paragraph(out, &o->style, "", 2, buf_str(&b));
    buf_reset(&b);
    if (*profile_text(p, p->trace.filter)) {
        buf_addstr(&b, "of the blocks that were traced: those with ");
        text_add_name(&b, &o->style, profile_text(p, p->trace.filter));
    }
    write_line(out, &o->style, &b);
    write_clock(out, p, &o->style);
    if (o->filter) {
        buf_addstr(&b, "only ");
        text_add_name(&b, &o->style, o->filter);
    }
    write_line(out, &o->style, &b);
    buf_release(&b);
}

/* ---- totals ---- */

/* Empties the buffer. */
static void write_total(struct sink *out, const struct text_style *style, const char *name, struct buf *b)
{
    struct buf label = BUF_INIT;
    buf_printf(&label, "  %s", name);
    text_paragraph(out, style, buf_str(&label), 13, buf_str(b));
    buf_release(&label);
    buf_reset(b);
}

static void add_both(struct buf *b, const struct text_style *style, const struct rollup *r,
                     enum rollup_metric m, const char *noun)
{
    const struct rollup_value *v = &r->total.of[m];
    const bool is_bound = figure_bounds_of(r->profile, m);
    common_mark(b, is_bound);
    text_add_figure(b, style, &v->bytes, TEXT_BYTES);
    buf_addstr(b, " in ");
    common_mark(b, is_bound);
    text_add_figure(b, style, &v->count, TEXT_COUNT);
    buf_printf(b, " %s", noun);
}

static void write_totals(struct sink *out, const struct rollup *r, const struct profile_summary *f,
                         const struct text_style *style)
{
    const struct rollup_value *of = r->total.of;
    struct buf b = BUF_INIT;
    add_both(&b, style, r, ROLLUP_LIVE, "objects");
    write_total(out, style, report_live_word(f), &b);
    if (r->options.keep_sample) { /* other figures of selected objects are unknown */
        buf_release(&b);
        return;
    }
    report_add_peak(&b, r, style);
    write_total(out, style, "peak", &b);
    add_both(&b, style, r, ROLLUP_ALLOCATED, "allocations");
    write_total(out, style, "allocated", &b);
    if (rollup_known(&r->total, ROLLUP_TEMPORARY)) {
        text_add_share(&b, of[ROLLUP_TEMPORARY].bytes.value, of[ROLLUP_ALLOCATED].bytes.value);
        buf_addstr(&b, of[ROLLUP_ALLOCATED].bytes.value > 0 ? " of that: " : "");
        common_mark(&b, figure_bounds_of(r->profile, ROLLUP_TEMPORARY));
        text_add_figure(&b, style, &of[ROLLUP_TEMPORARY].bytes, TEXT_BYTES);
        buf_addstr(&b, " freed before the thread's next allocation");
    } else {
        buf_addch(&b, '-');
    }
    write_total(out, style, "temporary", &b);
    buf_release(&b);
}

static void write_processes(struct sink *out, const struct rollup *r, const struct report_options *o)
{
    if (r->profile->images.len < 2 || r->options.group == ROLLUP_BY_PROCESS)
        return;
    struct report_options few = *o;
    few.top = LARGEST_PROCESSES;
    struct rollup *processes = rollup_largest_processes(r->profile, &r->options, few.top);
    sink_text(out, profile_is_of_kernel(r->profile)
                       ? "\n  its objects, and its pages without those that hold objects\n"
                       : "\n  the largest processes\n");
    report_rows(out, processes, &few, 2);
    rollup_free(processes);
}

static void write_caption(struct sink *out, const struct rollup *r, const struct profile_summary *f,
                          const struct text_style *style)
{
    static const char *const metrics[] = {
        [ROLLUP_SORT_LIVE] = "", /* depends on the state of the processes */
        [ROLLUP_SORT_PEAK] = "Held at the peak",
        [ROLLUP_SORT_ALLOCATED] = "Allocated in all",
        [ROLLUP_SORT_ALLOCATIONS] = "Allocations in all",
        [ROLLUP_SORT_TEMPORARY] = "Freed before the thread's next allocation",
        [ROLLUP_SORT_AGE] = "Held, oldest first",
        [ROLLUP_SORT_REQUESTED] = "Requested in all",
        [ROLLUP_SORT_SLACK] = "Allocated in all, and not requested",
    };
    static const char *const groups[] = {
        [ROLLUP_BY_STACK] = "stack, innermost call first",
        [ROLLUP_BY_FUNCTION] = "function; SELF without its callees, TOTAL with them",
        [ROLLUP_BY_FILE] = "source file; SELF without its callees, TOTAL with them",
        [ROLLUP_BY_DIRECTORY] = "source directory; TOTAL with the directories below it",
        [ROLLUP_BY_MODULE] = "module; SELF without its callees, TOTAL with them",
        [ROLLUP_BY_OWNER] = "first function outside the C and C++ libraries",
        [ROLLUP_BY_THREAD] = "thread that allocated it",
        [ROLLUP_BY_SIZE] = "size of the object",
        [ROLLUP_BY_PROCESS] = "process",
        [ROLLUP_BY_CALLERS] = ": below each function its callers",
        [ROLLUP_BY_CALLEES] = ": below each function its callees",
    };
    const char *metric = metrics[r->options.sort];
    if (r->options.sort == ROLLUP_SORT_LIVE)
        metric = f->past                                ? "Held then"
                 : f->running == r->profile->images.len ? "Held now"
                 : f->cut                               ? "Held when last seen"
                 : f->running                           ? "Held"
                                                        : "Still held at the end";
    struct buf b = BUF_INIT;
    if (rollup_is_tree(r->options.group)) {
        buf_printf(&b, "%s in ", metric);
        text_add_name(&b, style, r->options.focus);
        buf_addstr(&b, groups[r->options.group]);
    } else {
        buf_printf(&b, "%s, by %s", metric, groups[r->options.group]);
    }
    sink_printf(out, "\n%s", text_begin(style, TEXT_STRONG));
    text_paragraph(out, style, "", 0, buf_str(&b));
    sink_text(out, text_end(style, TEXT_STRONG));
    buf_release(&b);
}

/* A program that frees everything in the end has little to show by what it holds. */
static void write_hint_at_peak(struct sink *out, const struct rollup *r, const struct text_style *style)
{
    const struct rollup_value *of = r->total.of;
    if (r->options.sort == ROLLUP_SORT_LIVE && !r->options.keep_sample &&
        rollup_known(&r->total, ROLLUP_PEAK) &&
        estimate_interval(&of[ROLLUP_LIVE].bytes).high * 10 < of[ROLLUP_PEAK].bytes.value)
        text_paragraph(out, style, "", 0,
                       "(less than a tenth of the peak; --sort peak shows what was held at the peak)");
}

void report_write(struct sink *out, const struct rollup *r, const struct report_options *o)
{
    struct profile_summary f = profile_summary_of(r->profile);
    write_header(out, r, &f, o);
    if (f.main_image == PROFILE_NONE) {
        if (r->profile->unobserved.len)
            sink_char(out, '\n');
        report_unobserved(out, r->profile, &o->style, "Not observed");
        return;
    }
    sink_char(out, '\n');
    write_totals(out, r, &f, &o->style);
    write_processes(out, r, o);
    write_caption(out, r, &f, &o->style);
    write_hint_at_peak(out, r, &o->style);
    report_rows(out, r, o, 2);
    sink_char(out, '\n');
    report_footer(out, r->profile, &f, &o->style);
}
