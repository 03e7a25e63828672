/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/bench/bench_view.h"

#include <inttypes.h>
#include <math.h>

#include "base/units.h"
#include "view/text/columns.h"
#include "view/text/notes.h"

/* M. Gebai and M. R. Dagenais, ACM Computing Surveys 51 (2), 2018. */
#define PUBLISHED                                                                                            \
    "\npublished for another machine (Gebai and Dagenais, 2018), ns an event:\n"                             \
    "    kernel LTTng 92, ftrace 114, perf 118, eBPF 126; user LTTng 227, printf 250, SystemTap 405\n"

/* Three digits, so that a fraction of a nanosecond is seen, and no more than is known. */
static void add_ns(struct buf *b, const struct text_style *s, double ns)
{
    if (!isfinite(ns))
        buf_addstr(b, text_dash(s));
    else if (fabs(ns) < 0.005)
        buf_addstr(b, "0.00"); /* and not -0.00 */
    else if (fabs(ns) < 9.995)
        buf_printf(b, "%.2f", ns);
    else if (fabs(ns) < 99.95)
        buf_printf(b, "%.1f", ns);
    else
        buf_printf(b, "%.0f", ns);
}

void bench_view_ns(struct columns *g, const struct text_style *s, double ns)
{
    struct buf b = BUF_INIT;
    add_ns(&b, s, ns);
    columns_cell(g, &b);
}

static void cell_text(struct columns *g, const char *text)
{
    struct buf b = BUF_INIT;
    buf_addstr(&b, text);
    columns_cell(g, &b);
}

static void cell_interval(struct columns *g, const struct text_style *s, const struct interval *i)
{
    struct buf b = BUF_INIT;
    add_ns(&b, s, i->low);
    if (isfinite(i->low)) {
        buf_addstr(&b, s->utf8 ? "–" : "-");
        add_ns(&b, s, i->high);
    }
    columns_cell(g, &b);
}

static void cell_memory(struct columns *g, const struct text_style *s, const struct bench_row *r)
{
    char text[UNITS_TEXT_BYTES];
    cell_text(g, r->memory_bytes ? units_format_size(text, (double)r->memory_bytes) : text_dash(s));
}

/* Why there is no figure. */
static void add_reason(struct columns *g, const struct bench_row *r, const struct bench_figures *f)
{
    struct buf below = BUF_INIT;
    if (r->unavailable)
        buf_printf(&below, "    unavailable: %s\n", r->unavailable);
    else if (isnan(f->median))
        buf_addstr(&below,
                   "    no figure: other programs disturbed each batch, try --time or an idle machine\n");
    if (r->lost)
        buf_printf(&below, "    lost %" PRIu64 " of %" PRIu64 " events\n", r->lost, r->expected);
    if (bench_row_missing(r))
        buf_printf(&below, "    %" PRIu64 " of %" PRIu64 " events are missing, and not counted as lost\n",
                   bench_row_missing(r), r->expected);
    columns_below(g, &below);
}

static void write_floors(struct sink *out, const struct bench_result *result, const struct text_style *s)
{
    struct columns g = {.style = s};
    sink_text(out, "the floors of this machine, which nothing goes below:\n");
    columns_column(&g, (struct columns_column){"FLOOR", .left = true});
    columns_column(&g, (struct columns_column){"MEDIAN NS"});
    columns_column(&g, (struct columns_column){"95 %"});
    columns_column(&g, (struct columns_column){"LEAST"});
    vec_each (const struct bench_row, r, &result->floors) {
        const struct bench_figures f = bench_row_figures(result, r);
        columns_row(&g);
        cell_text(&g, r->label);
        bench_view_ns(&g, s, f.median);
        cell_interval(&g, s, &f.interval);
        bench_view_ns(&g, s, f.least);
        add_reason(&g, r, &f);
    }
    columns_write(&g, out);
    columns_release(&g);
}

static bool has_payloads(const struct bench_result *result)
{
    return result->rows.len && result->rows.at[0].has_payload;
}

static void add_columns(struct columns *g, bool has_threads, bool has_payload)
{
    columns_column(g, (struct columns_column){"MECHANISM", .left = true});
    columns_column(g, (struct columns_column){"SINK", .left = true});
    if (has_payload)
        columns_column(g, (struct columns_column){"PAYLOAD"});
    columns_column(g, (struct columns_column){"MEDIAN NS", .look = TEXT_STRONG});
    columns_column(g, (struct columns_column){"95 %", .drop_rank = 5});
    columns_column(g, (struct columns_column){"LEAST", .drop_rank = 4});
    columns_column(g, (struct columns_column){"P90", .drop_rank = 6});
    columns_column(g, (struct columns_column){"P99", .drop_rank = 3});
    columns_column(g, (struct columns_column){"ISOLATED", .drop_rank = 2});
    columns_column(g, (struct columns_column){"COLD", .drop_rank = 1});
    if (has_threads)
        columns_column(g, (struct columns_column){"TOGETHER", .drop_rank = 2});
    columns_column(g, (struct columns_column){"BYTES", .drop_rank = 7});
    columns_column(g, (struct columns_column){"MEMORY", .drop_rank = 7});
    columns_column(g, (struct columns_column){"FLOORS", .drop_rank = 4});
    columns_column(g, (struct columns_column){"FLOOR", .left = true, .drop_rank = 8});
}

static void add_row(struct columns *g, const struct bench_result *result, const struct bench_row *r,
                    const struct text_style *s)
{
    const struct bench_figures f = bench_row_figures(result, r);
    columns_row(g);
    cell_text(g, r->mechanism);
    cell_text(g, r->sink);
    if (has_payloads(result)) {
        struct buf bytes = BUF_INIT;
        buf_printf(&bytes, "%" PRIu32, r->payload_bytes);
        columns_cell(g, &bytes);
    }
    bench_view_ns(g, s, f.median);
    cell_interval(g, s, &f.interval);
    bench_view_ns(g, s, f.least);
    bench_view_ns(g, s, f.p90);
    bench_view_ns(g, s, f.p99);
    bench_view_ns(g, s, f.isolated);
    bench_view_ns(g, s, f.cold);
    if (result->threads > 1)
        bench_view_ns(g, s, f.together);
    bench_view_ns(g, s, f.event_bytes);
    cell_memory(g, s, r);
    bench_view_ns(g, s, f.ratio);
    cell_text(g, r->floor ? r->floor : "");
    add_reason(g, r, &f);
}

static void write_rows(struct sink *out, const struct bench_result *result, const struct text_style *s)
{
    struct columns g = {.style = s};
    sink_text(out, "what a call costs more, in ns, with this mechanism and this sink (allium bench --list):\n"
                   "    ISOLATED: one call in 10 us; COLD: after 8 MiB of other data; FLOORS: MEDIAN divided "
                   "by FLOOR\n");
    if (result->threads > 1)
        sink_printf(out, "    TOGETHER: in each of %u threads\n", result->threads);
    add_columns(&g, result->threads > 1, has_payloads(result));
    vec_each (const struct bench_row, r, &result->rows)
        add_row(&g, result, r, s);
    columns_write(&g, out);
    columns_release(&g);
}

/* ---- the parts of a row ---- */

static void add_part(struct columns *g, const struct text_style *s, const char *label, double alone,
                     double gains)
{
    columns_row(g);
    cell_text(g, label);
    bench_view_ns(g, s, alone);
    bench_view_ns(g, s, gains);
}

static void write_parts(struct sink *out, const struct bench_result *result, const struct bench_parts *parts,
                        const struct text_style *s)
{
    const struct bench_row *row = &result->rows.at[0];
    struct columns g = {.style = s};
    struct buf below = BUF_INIT;
    sink_printf(out, "%s with %s:\n", row->mechanism, row->sink);
    columns_column(&g, (struct columns_column){"PART", .left = true});
    columns_column(&g, (struct columns_column){"ALONE NS"});
    columns_column(&g, (struct columns_column){"GAINED WITHOUT"});
    vec_each (const struct bench_part, p, &parts->list)
        add_part(&g, s, p->label, p->alone_ns, p->gains_ns);
    add_part(&g, s, "sum of the parts", parts->sum_ns, NAN);
    if (parts->is_apart)
        add_part(&g, s,
                 parts->whole_ns < parts->sum_ns ? "difference: the parts overlap"
                                                 : "difference: other code, or parts displace one another",
                 parts->whole_ns - parts->sum_ns, NAN);
    add_part(&g, s, "the whole", parts->whole_ns, NAN);
    if (row->unavailable)
        buf_printf(&below, "    unavailable: %s\n", row->unavailable);
    columns_below(&g, &below);
    columns_write(&g, out);
    columns_release(&g);
}

/* ---- advice ---- */

static const char *means(uint32_t needs)
{
    return needs & BENCH_OF_KERNEL       ? "kernel, as root"
           : needs & BENCH_NEEDS_ROOT    ? "running, as root"
           : needs & BENCH_NEEDS_REBUILD ? "built anew"
                                         : "unchanged";
}

static void add_advice(struct columns *g, const struct text_style *s, const struct bench_advice *a)
{
    char text[UNITS_TEXT_BYTES];
    struct buf b = BUF_INIT;
    columns_row(g);
    cell_text(g, means(a->needs));
    cell_text(g, a->keeps == BENCH_KEEPS_ORDER ? "each event" : "sums");
    cell_text(g, a->row->mechanism);
    cell_text(g, a->row->sink);
    cell_text(g, a->row->clock ? a->row->clock : text_dash(s));
    bench_view_ns(g, s, a->event_ns);
    if (a->cpu < 1)
        buf_printf(&b, "%.3g %%", a->cpu * 100);
    else
        buf_printf(&b, "%.3g CPUs", a->cpu);
    columns_cell(g, &b);
    cell_text(g, isnan(a->buffer_bytes) ? text_dash(s) : units_format_size(text, a->buffer_bytes));
    cell_text(g, isnan(a->held_s) ? text_dash(s) : units_format_duration(text, a->held_s * 1e9));
}

static void write_advice(struct sink *out, const struct bench_shown *shown, const struct text_style *s)
{
    struct columns g = {.style = s};
    if (!shown->advice->len)
        return;
    sink_printf(
        out, "\nadvice: the cheapest of these at %.0f events a second (--rate), by what is to be observed:\n",
        shown->rate);
    columns_column(&g, (struct columns_column){"PROGRAM", .left = true});
    columns_column(&g, (struct columns_column){"KEEPS", .left = true});
    columns_column(&g, (struct columns_column){"MECHANISM", .left = true});
    columns_column(&g, (struct columns_column){"SINK", .left = true});
    columns_column(&g, (struct columns_column){"CLOCK", .left = true});
    columns_column(&g, (struct columns_column){"EVENT NS"});
    columns_column(&g, (struct columns_column){"OF A CPU"});
    columns_column(&g, (struct columns_column){"BUFFER"});
    columns_column(&g, (struct columns_column){"HOLDS"});
    vec_each (const struct bench_advice, a, shown->advice)
        add_advice(&g, s, a);
    columns_write(&g, out);
    columns_release(&g);
}

void bench_view_text(struct sink *out, const struct bench_shown *shown, const struct text_style *s)
{
    write_floors(out, shown->result, s);
    sink_char(out, '\n');
    if (shown->parts) {
        write_parts(out, shown->result, shown->parts, s);
    } else {
        write_rows(out, shown->result, s);
        sink_text(out, PUBLISHED);
        bench_view_switchings(out, &shown->result->switchings, s);
        write_advice(out, shown, s);
    }
}

void bench_view_notes(struct buf *notes, const struct bench_result *result)
{
    uint64_t switched = 0, apart = 0, shots = 0;
    for (int side = 0; side < 2; side++)
        vec_each (const struct bench_row, r, side ? &result->rows : &result->floors) {
            switched += r->alone.switched + r->together.switched;
            apart += r->alone.apart + r->together.apart;
            shots += r->dropped_shots;
        }
    char took[UNITS_TEXT_BYTES];
    notes_add(notes,
              "%s%u turn%s of each row in %s on %u CPU%s; a figure is the time of a call, less that of the "
              "same call without "
              "the mechanism",
              result->turns == 1 ? "" : "up to ", result->turns, result->turns == 1 ? "" : "s",
              units_format_duration(took, result->seconds * 1e9), result->cpus, result->cpus == 1 ? "" : "s");
    notes_add_count(notes, switched, "batch{|es} {was|were} dropped: the kernel took the CPU away meanwhile");
    notes_add_count(notes, apart,
                    "batch{|es} {was|were} dropped: threads ran at the same time for less than 85 % of it");
    notes_add_count(notes, shots,
                    "single call{s} {was|were} dropped: the kernel took the CPU away meanwhile");
}
