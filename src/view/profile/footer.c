/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/units.h"
#include "view/profile/common.h"
#include "view/profile/report_parts.h"
#include "view/profile/runtime_hint.h"

#define UNOBSERVED_SHOWN 8

struct footer {
    struct sink *out;
    const struct text_style *style;
    const struct profile *p;
    const struct profile_summary *f;
};

static void write_heading(const struct footer *c, const char *text)
{
    sink_printf(c->out, "%s%s%s\n", text_begin(c->style, TEXT_STRONG), text, text_end(c->style, TEXT_STRONG));
}

static void write_words(const struct footer *c, struct buf *b, enum text_look look)
{
    sink_text(c->out, text_begin(c->style, look));
    text_paragraph(c->out, c->style, "", 2, buf_str(b));
    sink_text(c->out, text_end(c->style, look));
    buf_reset(b);
}

/* ---- lost ---- */

/* Those from this kind on. */
static bool write_losses(const struct footer *c, struct buf *b, int first)
{
    bool any = false;
    for (int k = first; k < PROFILE_LOSSES; k++) {
        const struct profile_summary_loss *loss = &profile_summary_losses[k];
        if (!c->f->losses[k])
            continue;
        any = true;
        text_add_number(b, c->f->losses[k], loss->noun);
        buf_printf(b, " %s. %s", loss->what, loss->advice);
        write_words(c, b, k < PROFILE_FAILED_REQUESTS ? TEXT_ALARM : TEXT_PLAIN);
    }
    return any;
}

/* Of recordings of single events: the kernel's, or a program's trace. */
static void write_lost_events(const struct footer *c, const char *heading)
{
    struct buf b = BUF_INIT;
    const struct profile_trace *t = &c->p->trace;
    const uint64_t lost = c->f->losses[PROFILE_LOST_SAMPLES];
    write_heading(c, heading);
    if (lost)
        text_add_number(&b, lost, "event");
    buf_addstr(&b, lost ? " lost or not understood: figures may be too high or too low" : "nothing");
    buf_addstr(&b, !lost      ? ""
                   : t->known ? " (~). A larger --buffer prevents losses."
                              : ". A larger --buffer prevents losses.");
    write_words(c, &b, lost ? TEXT_ALARM : TEXT_PLAIN);
    if (t->cut_packets) {
        text_add_number(&b, t->cut_packets, "packet");
        buf_addstr(
            &b,
            " at the end not whole: the trace was cut short, and figures may be too high or too low (~).");
        write_words(c, &b, TEXT_ALARM);
    }
    if (t->unknown_frees) {
        text_add_number(&b, t->unknown_frees, "free");
        buf_addstr(&b, " of blocks whose allocation is not in the trace: they are in no figure.");
        write_words(c, &b, TEXT_PLAIN);
    }
    if (t->early_frees) {
        text_add_number(&b, t->early_frees, "free");
        buf_addstr(&b, " on another CPU had a time less than 1 µs before the allocation of its block: "
                       "they count as after it.");
        write_words(c, &b, TEXT_PLAIN);
    }
    if (t->without_stack) {
        text_add_number(&b, t->without_stack, "allocation");
        buf_addstr(&b,
                   " with the call alone, and not the whole stack: the ledger was full, or the end of the "
                   "recording is missing.");
        write_words(c, &b, TEXT_ALARM);
    }
    if (t->known)
        write_losses(c, &b, PROFILE_LOST_LIVE);
    common_wall_step(&b, t->wall_step_ns);
    if (b.len)
        write_words(c, &b, TEXT_PLAIN);
    if (t->older.objects) {
        char size[UNITS_TEXT_BYTES];
        text_add_number(&b, t->older.objects, "free");
        buf_printf(&b, " (%s) of blocks that were allocated before the span: they are in no figure.",
                   units_format_size(size, (double)t->older.bytes));
        write_words(c, &b, TEXT_PLAIN);
    }
    buf_release(&b);
}

static void write_lost(const struct footer *c, const char *heading)
{
    char size[UNITS_TEXT_BYTES];
    struct buf b = BUF_INIT;
    write_heading(c, heading);
    bool any = write_losses(c, &b, 0);
    if (*c->f->full) {
        buf_addstr(&b, "A ledger stopped growing: ");
        text_add_name(&b, c->style, c->f->full);
        buf_addstr(&b, ". Later figures are incomplete; make more room and run the program again.");
        write_words(c, &b, TEXT_ALARM);
    }
    if (c->f->off_ns) {
        char off[UNITS_TEXT_BYTES], observed[UNITS_TEXT_BYTES];
        buf_printf(
            &b, "Sampling was off for %s of %s: memory allocated in that time is missing from these figures.",
            units_format_duration(off, (double)c->f->off_ns),
            units_format_duration(observed, (double)c->f->observed_ns));
        write_words(c, &b, TEXT_ALARM);
    }
    if (c->f->torn_samples) {
        text_add_number(&b, c->f->torn_samples, "live sample");
        buf_addstr(&b, " changed while the ledger was read, and left out of the ages. Read it again when the "
                       "program allocates less.");
        write_words(c, &b, TEXT_PLAIN);
    }
    if (c->f->inconsistent) {
        buf_addstr(&b, "A ledger contained invalid records, which are left out. The program may have "
                       "overwritten them: look for stray writes, and please report it.");
        write_words(c, &b, TEXT_ALARM);
    }
    if (c->p->images_dropped) {
        text_add_number(&b, c->p->images_dropped, "process image");
        buf_printf(
            &b, " too many to store, only counted; their peaks add up to about %s. Observe fewer processes.",
            units_format_size(size, c->p->images_dropped_peak_bytes));
        write_words(c, &b, TEXT_PLAIN);
    }
    if (c->f->unread) {
        text_add_number(&b, c->f->unread, "process image");
        buf_addstr(
            &b, " had no snapshot yet at this time, missing from all figures. Choose a slightly later time.");
        write_words(c, &b, TEXT_PLAIN);
    }
    if (!any && !profile_summary_any_lost(c->p, c->f))
        sink_text(c->out, "  nothing\n");
    if (c->f->under_way) {
        text_add_number(&b, c->f->under_way, "operation");
        buf_addstr(&b, " under way while the ledger was read: sums may differ by that many. This is normal.");
        write_words(c, &b, TEXT_PLAIN);
    }
    buf_release(&b);
}

void report_lost(struct sink *out, const struct profile *p, const struct profile_summary *f,
                 const struct text_style *style, const char *heading)
{
    const struct footer c = {.out = out, .style = style, .p = p, .f = f};
    if (p->trace.known)
        write_lost_events(&c, heading);
    else
        write_lost(&c, heading);
}

/* ---- programs without the agent ---- */

void report_add_unobserved(struct buf *b, const struct profile *p, const struct profile_unobserved *u,
                           const struct text_style *style)
{
    const char *program = profile_text(p, u->program);
    text_add_number(b, u->processes, "start");
    buf_addstr(b, *program ? " of " : " of a program that ");
    text_add_name(b, style, program);
    buf_addstr(b, *program ? ", which " : "");
    text_add_name(b, style, profile_text(p, u->reason));
}

static void write_unobserved(const struct footer *c, const char *heading)
{
    struct buf b = BUF_INIT;
    uint64_t more = 0;
    if (!c->p->unobserved.len)
        return;
    write_heading(c, heading);
    for (size_t i = 0; i < c->p->unobserved.len; i++) {
        const struct profile_unobserved *u = &c->p->unobserved.at[i];
        if (i >= UNOBSERVED_SHOWN) {
            more += u->processes;
            continue;
        }
        report_add_unobserved(&b, c->p, u, c->style);
        write_words(c, &b, TEXT_PLAIN);
    }
    if (more) {
        text_add_number(&b, more, "start");
        buf_addstr(&b, " of other programs");
        write_words(c, &b, TEXT_PLAIN);
    }
    buf_release(&b);
}

void report_unobserved(struct sink *out, const struct profile *p, const struct text_style *style,
                       const char *heading)
{
    write_unobserved(&(struct footer){.out = out, .style = style, .p = p}, heading);
}

/* ---- the kernel ---- */

static void write_frees_of_kernel(const struct footer *c)
{
    const struct profile_kernel *k = &c->p->kernel;
    const bool is_filtered = *profile_text(c->p, k->filter);
    const struct {
        uint64_t n;
        bool shown; /* also if there are none */
        const char *words;
    } kinds[] = {
        {k->frees_without_event, true, "free{s} without an event: the address was allocated again"},
        {k->older_frees, !is_filtered,
         "free{s} of objects whose allocation was not seen: older than the recording, or in bulk"},
        {k->frees_after_loss, false, "free{s} of objects whose allocation may be among the lost events"},
        {k->unexplained_frees, false,
         "free{s} of objects that came without an event (in bulk), where others had been freed"},
        {k->null_frees, true, "free{s} of NULL"},
    };
    char size[UNITS_TEXT_BYTES], time[UNITS_TEXT_BYTES];
    struct buf b = BUF_INIT;
    if (!k->known || c->f->past)
        return;
    write_heading(c, "Frees");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (!kinds[i].n && !kinds[i].shown)
            continue;
        text_add_words(&b, kinds[i].n, kinds[i].words);
        write_words(c, &b, TEXT_PLAIN);
    }
    if (k->settle_ns) {
        buf_addstr(&b, "Of the live objects, ");
        text_add_words(&b, k->settled_objects, "object{s}");
        buf_printf(&b, " of %s were freed within %s after the end, by RCU for example",
                   units_format_size(size, (double)k->settled_bytes),
                   units_format_duration(time, (double)k->settle_ns));
        write_words(c, &b, TEXT_PLAIN);
    }
    buf_release(&b);
}

static void write_unseen_of_kernel(const struct footer *c)
{
    struct buf b = BUF_INIT;
    const char *filter = profile_text(c->p, c->p->kernel.filter);
    const bool has_pages = c->p->images.len > 1;
    write_heading(c, "Not in these figures");
    if (*filter) {
        buf_addstr(&b, "All allocations but those of ");
        text_add_name(&b, c->style, filter);
        write_words(c, &b, TEXT_ALARM);
    }
    buf_printf(&b,
               "%s from before the recording, and objects that are allocated in bulk, which has no event; "
               "%s. Objects that are freed without an event (in bulk, for example) count as live until their "
               "address is used again.",
               has_pages ? "Objects and pages" : "Objects",
               has_pages ? "what is free in pages that hold objects"
                         : "whole pages, per-CPU memory and vmalloc");
    write_words(c, &b, TEXT_PLAIN);
    buf_release(&b);
}

/* ---- cost ---- */

static void write_recorder(const struct footer *c, struct buf *b)
{
    char cpu[UNITS_TEXT_BYTES], memory[UNITS_TEXT_BYTES];
    if (!c->p->recorder_cpu_ns)
        return;
    buf_printf(b, "The recorder (allium %s) took %s of CPU and at most %s of memory",
               profile_is_of_kernel(c->p) ? "sys record" : "run",
               units_format_duration(cpu, (double)c->p->recorder_cpu_ns),
               units_format_size(memory, (double)c->p->recorder_peak_bytes));
    write_words(c, b, TEXT_PLAIN);
}

static void write_cost(const struct footer *c)
{
    const struct profile_summary *f = c->f;
    char ledger[UNITS_TEXT_BYTES], limit[UNITS_TEXT_BYTES], cpu[UNITS_TEXT_BYTES], observed[UNITS_TEXT_BYTES];
    struct buf b = BUF_INIT;
    if (profile_is_of_kernel(c->p)) {
        if (c->p->recorder_cpu_ns)
            write_heading(c, "Cost of observing");
        write_recorder(c, &b);
        buf_release(&b);
        return;
    }
    write_heading(c, "Cost of observing");
    text_add_number(&b, f->samples, "sample");
    buf_addstr(&b, ", ");
    text_add_number(&b, f->live_samples, NULL);
    if (f->past)
        buf_addstr(&b,
                   " live at that time; the report of the whole recording shows CPU time and ledger size");
    else
        buf_printf(&b, " live; %s of ledger (limit %s); %s of CPU in the sampling path",
                   units_format_size(ledger, (double)f->ledger_bytes),
                   units_format_size(limit, (double)f->ledger_limit_bytes),
                   units_format_duration(cpu, (double)f->cold_ns));
    if (f->observed_ns && !f->past) {
        buf_addstr(&b, ", ");
        text_add_share(&b, (double)f->cold_ns, (double)f->observed_ns);
        buf_printf(&b, " of %s", units_format_duration(observed, (double)f->observed_ns));
    }
    write_words(c, &b, TEXT_PLAIN);
    write_recorder(c, &b);
    buf_release(&b);
}

/* ---- unseen ---- */

static bool is_of_image(void *image, const struct profile *p, uint32_t cell)
{
    return p->cells.at[cell].image == *(const uint32_t *)image;
}

/* Appends the peak of one image, with its interval. */
static void add_peak_of(struct buf *b, const struct profile *p, uint32_t image,
                        const struct text_style *style)
{
    const struct rollup_options only = {
        .group = ROLLUP_BY_PROCESS,
        .sort = ROLLUP_SORT_PEAK,
        .keep = is_of_image,
        .arg = &image,
        .without = 1u << ROLLUP_LIVE | 1u << ROLLUP_ALLOCATED | 1u << ROLLUP_TEMPORARY | 1u << ROLLUP_AGES,
    };
    struct rollup *r = rollup_new(p, &only);
    text_add_figure(b, style, &r->total.of[ROLLUP_PEAK].bytes, TEXT_BYTES);
    rollup_free(r);
}

void report_add_unseen(struct buf *b, const struct profile *p, uint32_t image, const struct text_style *style)
{
    const struct profile_image *i = &p->images.at[image];
    const char *hint = runtime_hint_of_image(p, image);
    char rss[UNITS_TEXT_BYTES];
    text_add_name(b, style, profile_text(p, i->comm));
    buf_printf(b, " (pid %d) has %s of anonymous memory, and malloc gave it ", i->pid,
               units_format_size(rss, (double)i->rss_anon_bytes));
    add_peak_of(b, p, image, style);
    buf_addstr(b, " at its peak. ");
    buf_addstr(b, hint ? hint : "The rest is not seen, see allium-limits(7).");
}

static void write_unseen(const struct footer *c)
{
    const struct profile_summary *f = c->f;
    char slack[UNITS_TEXT_BYTES], rss[UNITS_TEXT_BYTES];
    double seen = f->resident.live.value + f->resident.slack_bytes, all = (double)f->resident.rss_anon_bytes;
    double surely = estimate_interval(&f->resident.live).low + f->resident.slack_bytes;
    struct buf b = BUF_INIT;
    write_heading(c, "Not in these figures");
    if (all > 0) {
        if (f->resident.images < c->p->images.len)
            buf_printf(&b, "For the %u of %zu process images with a known RssAnon: ", f->resident.images,
                       c->p->images.len);
        buf_addstr(&b, "Live ");
        text_add_figure(&b, c->style, &f->resident.live, TEXT_BYTES);
        if (f->resident.slack_unknown)
            buf_addstr(&b, " (without the slack that malloc added, which is not known)");
        else if (!f->past)
            buf_printf(&b, " and about %s of slack that malloc added",
                       units_format_size(slack, f->resident.slack_bytes));
        buf_addstr(&b, " are ");
        if (!f->resident.live.samples && !rollup_exact(&f->resident.live)) {
            seen = estimate_interval(&f->resident.live).high + f->resident.slack_bytes;
            buf_addstr(&b, seen <= all ? "at most " : "");
        }
        if (seen <= all)
            text_add_share(&b, seen, all);
        else
            buf_addstr(&b, surely <= all ? "about all" : "more than all");
        buf_printf(&b, " of the %s of anonymous memory (RssAnon%s).", units_format_size(rss, all),
                   f->running == c->p->images.len ? "" : ", as last seen");
        buf_addstr(&b, seen <= all     ? " The rest: "
                       : surely <= all ? " The difference is within the interval. Not counted: "
                       : f->running == c->p->images.len
                           ? " Part of the live memory was never touched or is swapped out. Not counted: "
                           : " Part of the live memory was never touched, is swapped out, or was allocated "
                             "after RssAnon was read. Not counted: ");
    } else {
        buf_addstr(&b, "RssAnon is not known, nor the size of the memory that is not counted: ");
    }
    buf_addstr(&b, "free memory that the allocator keeps, the program's own allocators, direct mmap, JIT "
                   "code, thread stacks.");
    write_words(c, &b, TEXT_PLAIN);
    uint32_t image = runtime_hint_unseen_image(c->p);
    const char *hint = f->main_image == PROFILE_NONE ? NULL : runtime_hint_if_unread(c->p, f->main_image);
    if (image != PROFILE_NONE)
        report_add_unseen(&b, c->p, image, c->style);
    else if (hint)
        buf_addstr(&b, hint);
    if (b.len)
        write_words(c, &b, image == PROFILE_NONE ? TEXT_PLAIN : TEXT_ALARM);
    buf_release(&b);
}

void report_footer(struct sink *out, const struct profile *p, const struct profile_summary *f,
                   const struct text_style *style)
{
    struct footer c = {.out = out, .style = style, .p = p, .f = f};
    if (profile_is_of_kernel(p)) {
        write_lost_events(&c, "Lost");
        write_frees_of_kernel(&c);
    } else if (p->trace.known) {
        write_lost_events(&c, "Lost");
    } else {
        write_lost(&c, f->past ? "Lost by the end of the recording" : "Lost");
    }
    write_unobserved(&c, "Not observed");
    write_cost(&c);
    if (profile_is_of_kernel(p))
        write_unseen_of_kernel(&c);
    else
        write_unseen(&c);
}
