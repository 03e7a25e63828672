/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/profile/diff_view.h"

#include <inttypes.h>
#include <math.h>

#include "base/units.h"
#include "model/profile/diff_power.h"
#include "model/profile/figure_bounds.h"
#include "view/profile/diff_figures.h"
#include "view/profile/report_parts.h"

#define LABEL_COLUMN 15 /* column of the figures in the totals */
#define HOUR_NS      3600e9

struct screen {
    struct sink *out;
    const struct diff *d;
    const struct diff_view_options *o;
    const struct text_style *style;
    struct profile_summary facts[PROFILE_PAIR_SIDES];
};

const char *const diff_per_words[] = {[DIFF_PER_NOTHING] = "",
                                      [DIFF_PER_BOOT] = "per boot",
                                      [DIFF_PER_EVENT] = "per event",
                                      [DIFF_PER_SECOND] = "per second"};

static const char *const sides[] = {[PROFILE_PAIR_BEFORE] = "before", [PROFILE_PAIR_AFTER] = "after"};

int64_t diff_apart_ns(const struct diff *d)
{
    int64_t most = 0;
    vec_each (const struct profile_pair_image, i, &d->pair->images) {
        int64_t apart =
            i->same ? (int64_t)(i->of[PROFILE_PAIR_AFTER]->taken_ns - i->of[PROFILE_PAIR_BEFORE]->taken_ns)
                    : 0;
        if (llabs(apart) > llabs(most))
            most = apart;
    }
    return most;
}

bool diff_is_of_moments(const struct diff *d)
{
    vec_each (const struct profile_pair_image, i, &d->pair->images)
        if (!i->same)
            return false;
    return d->pair->images.len > 0;
}

static void write_words(const struct screen *s, struct buf *b, unsigned indent)
{
    if (b->len)
        text_paragraph(s->out, s->style, "", indent, buf_str(b));
    buf_reset(b);
}

static void write_heading(const struct screen *s, const char *text)
{
    sink_printf(s->out, "%s%s%s\n", text_begin(s->style, TEXT_STRONG), text, text_end(s->style, TEXT_STRONG));
}

static bool is_exact(const struct screen *s)
{
    return profile_summary_exact(&s->facts[PROFILE_PAIR_BEFORE]) &&
           profile_summary_exact(&s->facts[PROFILE_PAIR_AFTER]);
}

/* ---- header ---- */

static void add_who(struct buf *b, const struct screen *s, enum profile_pair_side side)
{
    const struct profile *p = s->d->of[side];
    uint32_t captures = s->d->side[side].n;
    if (captures > 1)
        buf_printf(b, "%" PRIu32 " captures of ", captures);
    if (captures > 1 && diff_per_of_kernel(p)) {
        buf_addstr(b, "the kernel");
    } else if (!p->images.len) {
        buf_addstr(b, "a source without samples");
    } else if (profile_is_of_kernel(p)) {
        buf_addstr(b, "the kernel");
    } else if (p->images.len > 1) {
        text_add_number(b, p->images.len, "process image");
    } else {
        text_add_name(b, s->style, profile_text(p, p->images.at[0].comm));
        buf_printf(b, " (pid %d)", p->images.at[0].pid);
    }
}

static void write_title(const struct screen *s)
{
    struct buf b = BUF_INIT, line = BUF_INIT;
    add_who(&b, s, PROFILE_PAIR_AFTER);
    if (diff_is_of_moments(s->d) && s->d->pair->images.len == 1) {
        buf_addstr(&b, ", at two moments");
    } else {
        buf_addstr(&b, ", against ");
        add_who(&b, s, PROFILE_PAIR_BEFORE);
    }
    text_add_short(&line, s->style, buf_str(&b), s->style->columns ? s->style->columns : SIZE_MAX);
    write_heading(s, buf_str(&line));
    buf_release(&b);
    buf_release(&line);
}

static void write_source(const struct screen *s, enum profile_pair_side side)
{
    char apart[UNITS_TEXT_BYTES];
    int64_t ns = diff_apart_ns(s->d);
    struct buf b = BUF_INIT, line = BUF_INIT;
    if (s->d->side[side].n > 1) {
        text_add_name(&b, s->style, s->o->source[side]);
        buf_printf(&line, "  %s", sides[side]);
        text_paragraph(s->out, s->style, buf_str(&line), 10, buf_str(&b));
        buf_release(&b);
        buf_release(&line);
        return;
    }
    buf_printf(&b, "%-8s", sides[side]);
    text_add_name(&b, s->style, s->o->source[side]);
    if (s->d->of[side]->images.len) {
        buf_addstr(&b, ", ");
        text_add_instant(&b, s->facts[side].taken_ns);
    }
    if (side == PROFILE_PAIR_AFTER && ns)
        buf_printf(&b, ", %s %s", units_format_duration(apart, (double)llabs(ns)),
                   ns > 0 ? "later" : "EARLIER");
    text_add_short(&line, s->style, buf_str(&b), s->style->columns ? s->style->columns - 2 : SIZE_MAX);
    sink_printf(s->out, "  %s\n", buf_str(&line));
    buf_release(&b);
    buf_release(&line);
}

static void write_period(const struct screen *s)
{
    const struct profile_summary *f = s->facts;
    struct buf b = BUF_INIT, other = BUF_INIT;
    report_add_period(&b, &f[PROFILE_PAIR_BEFORE], s->style);
    report_add_period(&other, &f[PROFILE_PAIR_AFTER], s->style);
    if (strcmp(buf_str(&b), buf_str(&other))) {
        buf_addstr(&b, " before; after ");
        buf_addstr(&b, buf_str(&other));
    }
    if (s->d->spread)
        buf_addstr(&b, "; means of the captures");
    if (s->o->per)
        buf_printf(&b, "; figures are %s%s", diff_per_words[s->o->per],
                   s->o->per == DIFF_PER_EVENT ? ", an allocation" : "");
    if (s->d->spread || !is_exact(s))
        buf_addstr(&b, "; in brackets the 95 % interval of the change");
    write_words(s, &b, 2);
    buf_release(&b);
    buf_release(&other);
}

static void write_header(const struct screen *s)
{
    struct buf b = BUF_INIT;
    write_title(s);
    write_source(s, PROFILE_PAIR_BEFORE);
    write_source(s, PROFILE_PAIR_AFTER);
    write_period(s);
    if (s->o->filter) {
        buf_addstr(&b, "only ");
        text_add_name(&b, s->style, s->o->filter);
    }
    write_words(s, &b, 2);
    if (figure_bounds_of_side(s->d, PROFILE_PAIR_BEFORE, ROLLUP_LIVE) ||
        figure_bounds_of_side(s->d, PROFILE_PAIR_AFTER, ROLLUP_LIVE))
        buf_addstr(
            &b,
            "~ marks figures that may be too high or too low: events of a trace were lost, or their order is "
            "not sure");
    write_words(s, &b, 2);
    buf_release(&b);
}

/* ---- totals ---- */

static void add_rate(struct buf *b, const struct screen *s, const struct diff_change *c)
{
    int64_t ns = diff_apart_ns(s->d);
    if (ns <= 0 || !diff_is_of_moments(s->d) || diff_is_noise(c))
        return;
    buf_addstr(b, ", ");
    text_add_change(b, c->value * HOUR_NS / (double)ns, TEXT_BYTES);
    buf_addstr(b, " an hour");
}

static void write_total(const struct screen *s, const char *name, enum rollup_metric metric, bool count)
{
    struct buf b = BUF_INIT, label = BUF_INIT;
    const struct diff_value *v = &s->d->total[metric];
    struct diff_change c = diff_change(v, count);
    buf_printf(&label, "  %s", name);
    const struct rollup_value *before = &v->of[DIFF_BEFORE], *after = &v->of[DIFF_AFTER];
    if (!diff_known(s->d, metric)) {
        buf_addch(&b, '-');
    } else if (!before->bytes.samples && !after->bytes.samples && c.interval.low != c.interval.high) {
        buf_addstr(&b, "nothing sampled, before or after");
    } else {
        diff_figures_change(&b, s->d, metric, &c, count);
        buf_addstr(&b, ", ");
        diff_figures_side(&b, s->d, metric, v, DIFF_BEFORE, count);
        buf_printf(&b, " %s ", text_arrow(s->style));
        diff_figures_side(&b, s->d, metric, v, DIFF_AFTER, count);
        if (metric == ROLLUP_LIVE && !count)
            add_rate(&b, s, &c);
    }
    text_paragraph(s->out, s->style, buf_str(&label), LABEL_COLUMN, buf_str(&b));
    buf_release(&b);
    buf_release(&label);
}

/* What the comparison could have seen, of the figure that the rows show. */
static void write_smallest(const struct screen *s)
{
    static const char *const metrics[] = {
        [ROLLUP_LIVE] = "live memory",
        [ROLLUP_PEAK] = "the memory at the peak",
        [ROLLUP_ALLOCATED] = "the memory allocated",
        [ROLLUP_TEMPORARY] = "temporary memory",
    };
    bool count = diff_counts(s->d->options.sort);
    enum rollup_metric metric = rollup_sort_metric(s->d->options.sort);
    const struct diff_value *v = &s->d->total[metric];
    const struct estimate *before = count ? &v->of[DIFF_BEFORE].count : &v->of[DIFF_BEFORE].bytes;
    double growth = diff_known(s->d, metric) ? diff_smallest_growth(v, count) : 0;
    struct buf b = BUF_INIT;
    if (!(growth > 0) || isinf(growth))
        return;
    buf_printf(&b, "growth of %s from ", count ? "the number of allocations" : metrics[metric]);
    char text[UNITS_TEXT_BYTES];
    buf_addstr(&b, count ? units_format_count(text, growth) : units_format_size(text, growth));
    if (before->value > 0) {
        buf_addstr(&b, " (");
        text_add_share(&b, growth, before->value);
        buf_addch(&b, ')');
    }
    buf_addstr(&b, " on, in 19 of 20 cases");
    if (s->d->spread)
        buf_addstr(&b, "; more captures detect smaller growth");
    else if (!diff_is_of_moments(s->d))
        buf_addstr(&b, "; a smaller --period detects smaller growth");
    text_paragraph(s->out, s->style, "  detects", LABEL_COLUMN, buf_str(&b));
    buf_release(&b);
}

static void write_totals(const struct screen *s)
{
    write_total(s, "live", ROLLUP_LIVE, false);
    write_total(s, "objects", ROLLUP_LIVE, true);
    write_total(s, "peak", ROLLUP_PEAK, false);
    write_total(s, "allocated", ROLLUP_ALLOCATED, false);
    write_total(s, "allocations", ROLLUP_ALLOCATED, true);
    write_total(s, "temporary", ROLLUP_TEMPORARY, false);
    write_smallest(s);
}

/* ---- rows ---- */

static bool has_two(enum rollup_group group)
{
    return group >= ROLLUP_BY_FUNCTION && group <= ROLLUP_BY_MODULE;
}

static bool has_module(enum rollup_group group)
{
    return group == ROLLUP_BY_FUNCTION || group == ROLLUP_BY_OWNER;
}

static void add_columns(struct columns *g, const struct diff_options *o, bool exact)
{
    columns_column(g, (struct columns_column){.header = "CHANGE", .look = TEXT_STRONG});
    if (!exact)
        columns_column(g, (struct columns_column){.header = "95 % INTERVAL", .drop_rank = 2});
    columns_column(g, (struct columns_column){.header = "BEFORE", .drop_rank = 4});
    columns_column(g, (struct columns_column){.header = "AFTER", .drop_rank = 3});
    if (has_two(o->group))
        columns_column(g, (struct columns_column){.header = o->inclusive ? "SELF" : "TOTAL", .drop_rank = 5});
    columns_column(g, (struct columns_column){.header = "VERDICT", .left = true, .drop_rank = 1});
    if (o->group != ROLLUP_BY_STACK)
        columns_column(g, (struct columns_column){
                              .header = report_name_headers[o->group], .left = true, .elastic = true});
    if (has_module(o->group))
        columns_column(
            g, (struct columns_column){.header = "MODULE", .left = true, .drop_rank = 6, .look = TEXT_FAINT});
}

static void add_row(struct columns *g, const struct screen *s, const struct diff_row *row, bool exact)
{
    const struct diff_options *o = &s->d->options;
    bool count = diff_counts(o->sort);
    enum rollup_metric metric = rollup_sort_metric(o->sort);
    enum text_unit unit = count ? TEXT_COUNT : TEXT_BYTES;
    const struct diff_value *v = o->inclusive ? &row->inclusive : &row->self;
    const struct diff_change *c = &row->change;
    struct buf cell = BUF_INIT;
    columns_row(g);
    diff_figures_mark(&cell, s->d, metric);
    text_add_change(&cell, c->value, unit);
    columns_cell(g, &cell);
    if (!exact) {
        text_add_change_interval(&cell, c->interval.low, c->interval.high, unit);
        columns_cell(g, &cell);
    }
    for (int part = DIFF_BEFORE; part <= DIFF_AFTER; part++) {
        diff_figures_side(&cell, s->d, metric, v, part, count);
        columns_cell(g, &cell);
    }
    if (has_two(o->group)) {
        diff_figures_mark(&cell, s->d, metric);
        text_add_change(&cell, diff_change(o->inclusive ? &row->self : &row->inclusive, count).value, unit);
        columns_cell(g, &cell);
    }
    buf_addstr(&cell, diff_is_noise(c) ? "within noise" : c->value > 0 ? "grew" : "shrank");
    columns_cell(g, &cell);
    if (o->group == ROLLUP_BY_STACK) {
        report_add_stack(g, s->d->pair->profile, row->index, s->o->frames);
        return;
    }
    text_add_name(&cell, s->style, row->name);
    columns_cell(g, &cell);
    if (has_module(o->group)) {
        text_add_name(&cell, s->style, frame_basename(row->module));
        columns_cell(g, &cell);
    }
}

static void write_caption(const struct screen *s)
{
    static const char *const metrics[] = {
        [ROLLUP_SORT_LIVE] = "live bytes",           [ROLLUP_SORT_PEAK] = "bytes held at the peak",
        [ROLLUP_SORT_ALLOCATED] = "bytes allocated", [ROLLUP_SORT_ALLOCATIONS] = "allocations",
        [ROLLUP_SORT_TEMPORARY] = "temporary bytes",
    };
    static const char *const groups[] = {
        [ROLLUP_BY_STACK] = "stack, innermost call first",
        [ROLLUP_BY_FUNCTION] = "function; TOTAL with its callees",
        [ROLLUP_BY_FILE] = "source file; TOTAL with its callees",
        [ROLLUP_BY_DIRECTORY] = "source directory, with those below it; SELF without them",
        [ROLLUP_BY_MODULE] = "module; TOTAL with its callees",
        [ROLLUP_BY_OWNER] = "first function outside the C and C++ libraries",
        [ROLLUP_BY_THREAD] = "thread that allocated it",
        [ROLLUP_BY_SIZE] = "size of the object",
        [ROLLUP_BY_PROCESS] = "process",
    };
    struct buf b = BUF_INIT;
    buf_printf(&b, "Change in %s%s%s, by %s", metrics[s->d->options.sort], s->o->per ? " " : "",
               diff_per_words[s->o->per], groups[s->d->options.group]);
    sink_printf(s->out, "\n%s", text_begin(s->style, TEXT_STRONG));
    text_paragraph(s->out, s->style, "", 0, buf_str(&b));
    sink_text(s->out, text_end(s->style, TEXT_STRONG));
    buf_release(&b);
}

static void write_rest(const struct screen *s, size_t shown)
{
    const struct diff *d = s->d;
    struct buf b = BUF_INIT;
    if (shown < d->rows.len) {
        buf_printf(&b, "%s %zu more", text_dots(s->style), d->rows.len - shown);
        if (d->certain > shown)
            buf_printf(&b, ", %zu certain", d->certain - shown);
        else
            buf_addstr(&b, ", all within noise");
    }
    if (d->unchanged)
        buf_printf(&b, "%s%zu without a change", b.len ? "; " : "", d->unchanged);
    if (b.len)
        sink_printf(s->out, "  %s%s%s\n", text_begin(s->style, TEXT_FAINT), buf_str(&b),
                    text_end(s->style, TEXT_FAINT));
    buf_release(&b);
}

static void write_rows(const struct screen *s)
{
    const struct diff *d = s->d;
    struct columns g = {.style = s->style, .indent = 2};
    bool exact = is_exact(s) && !d->spread;
    size_t shown = s->o->top && d->rows.len > s->o->top ? s->o->top : d->rows.len;
    write_caption(s);
    add_columns(&g, &d->options, exact);
    for (size_t i = 0; i < shown; i++)
        add_row(&g, s, &d->rows.at[i], exact);
    if (shown)
        columns_write(&g, s->out);
    else
        sink_text(s->out, "  nothing\n");
    write_rest(s, shown);
    columns_release(&g);
}

/* ---- how it was compared, what was lost ---- */

struct pairs {
    uint32_t same, still, past, others[PROFILE_PAIR_SIDES];
};

static struct pairs count_pairs(const struct profile_pair *j)
{
    struct pairs n = {0};
    vec_each (const struct profile_pair_image, i, &j->images) {
        n.same += i->same;
        n.still += i->still;
        n.past += i->same && !i->still && i->of[i->later]->past;
        for (int side = 0; side < PROFILE_PAIR_SIDES && !i->same; side++)
            n.others[side] += i->images[side];
    }
    return n;
}

/* How the spread of captures was used. */
static void add_captures(struct buf *b, const struct screen *s)
{
    const struct diff *d = s->d;
    buf_printf(b,
               "%" PRIu32 " against %" PRIu32 " captures: intervals have what captures of a side differ by",
               d->side[PROFILE_PAIR_BEFORE].n, d->side[PROFILE_PAIR_AFTER].n);
    if (d->rows.len)
        buf_printf(b,
                   "; those of the %zu rows are widened for their number, to %.4g %%, so that of the rows "
                   "that grew or "
                   "shrank one in 20 is due to chance",
                   d->rows.len, 100 * (1 - 2 * d->tail));
    buf_addstr(b, d->pair->by_name ? "; stacks are matched by the names of their functions." : ".");
}

static void write_compared(const struct screen *s)
{
    struct pairs n = count_pairs(s->d->pair);
    struct buf b = BUF_INIT;
    write_heading(s, "Compared");
    if (n.same) {
        text_add_number(&b, n.same, "process image");
        buf_addstr(
            &b, " sample by sample: objects live at both moments affect neither the change nor its interval");
        if (n.still == n.same)
            buf_addstr(&b, "; both moments are the same one");
        else if (n.still)
            buf_printf(&b, "; %u had ended before the first moment", n.still);
        if (n.past)
            buf_addstr(&b, "; for a past moment only the samples that lived on are known, so intervals may "
                           "be wider than necessary");
        buf_addch(&b, '.');
        write_words(s, &b, 2);
    }
    if (s->d->spread) {
        add_captures(&b, s);
        write_words(s, &b, 2);
    } else if (n.others[PROFILE_PAIR_BEFORE] || n.others[PROFILE_PAIR_AFTER]) {
        text_add_number(&b, n.others[PROFILE_PAIR_BEFORE], "process image");
        buf_printf(
            &b, " before and %u after without common samples: intervals include the uncertainty of both%s.",
            n.others[PROFILE_PAIR_AFTER],
            s->d->pair->by_name ? ", and stacks are matched by the names of their functions" : "");
        write_words(s, &b, 2);
    }
    if (!n.same && !n.others[PROFILE_PAIR_BEFORE] && !n.others[PROFILE_PAIR_AFTER])
        sink_text(s->out, "  nothing\n");
    buf_release(&b);
}

void diff_write(struct sink *out, const struct diff *d, const struct diff_view_options *o)
{
    struct screen s = {.out = out, .d = d, .o = o, .style = &o->style};
    text_numbers_fractions(d->by_capture);
    s.facts[PROFILE_PAIR_BEFORE] = profile_summary_of(d->of[PROFILE_PAIR_BEFORE]);
    s.facts[PROFILE_PAIR_AFTER] = profile_summary_of(d->of[PROFILE_PAIR_AFTER]);
    write_header(&s);
    sink_char(out, '\n');
    write_totals(&s);
    write_rows(&s);
    sink_char(out, '\n');
    write_compared(&s);
    report_lost(out, d->of[PROFILE_PAIR_BEFORE], &s.facts[PROFILE_PAIR_BEFORE], s.style, "Lost before");
    report_unobserved(out, d->of[PROFILE_PAIR_BEFORE], s.style, "Not observed before");
    report_lost(out, d->of[PROFILE_PAIR_AFTER], &s.facts[PROFILE_PAIR_AFTER], s.style, "Lost after");
    report_unobserved(out, d->of[PROFILE_PAIR_AFTER], s.style, "Not observed after");
    text_numbers_fractions(false);
}
