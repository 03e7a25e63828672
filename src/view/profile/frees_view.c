/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "model/profile/rollup.h"
#include "view/profile/common.h"
#include "view/profile/report_parts.h"
#include "view/profile/who_view.h"
#include "view/text/columns.h"

#define INDENT        2
#define CHAIN_FRAMES  3  /* shown frames of the stack that freed the block */
#define OWNER_COLUMNS 28 /* width of the function that allocated the block */

struct rows {
    const struct profile *p;
    const struct text_style *style;
    bool exact, processes;
    struct frames frames; /* working buffer for the present row */
};

static void add_columns(struct columns *g, const struct rows *r)
{
    columns_column(g, (struct columns_column){.header = "WHEN"});
    columns_column(g, (struct columns_column){.header = "LIFETIME"});
    columns_column(g, (struct columns_column){.header = "SIZE"});
    if (!r->exact)
        columns_column(g, (struct columns_column){.header = "STANDS FOR", .drop_rank = 2});
    columns_column(g, (struct columns_column){.header = "ADDRESS", .drop_rank = 1});
    columns_column(g, (struct columns_column){.header = "ALLOCATED BY", .left = true});
    columns_column(g, (struct columns_column){.header = "HOW", .left = true});
    columns_column(g, (struct columns_column){.header = "FREED BY", .left = true, .elastic = true});
    columns_column(g, (struct columns_column){.header = "THREAD", .left = true, .drop_rank = 3});
    if (r->processes)
        columns_column(g, (struct columns_column){.header = "PROCESS", .left = true, .drop_rank = 1});
}

static void add_owner(struct buf *b, const struct rows *r)
{
    char scratch[FRAME_NAME_BYTES];
    struct buf name = BUF_INIT;
    text_add_name(&name, r->style, frame_function(r->p, frames_owner(r->p, &r->frames), scratch));
    text_add_short(b, r->style, buf_str(&name), OWNER_COLUMNS);
    buf_release(&name);
}

/*
 * Appends "drop < close < main": the frames that freed the block, innermost first; only the caller if the stack was
 * not recorded.
 */
static void add_freer(struct buf *b, const struct rows *r)
{
    char scratch[FRAME_NAME_BYTES];
    const char *name = "";
    const struct frame *first = frames_owner(r->p, &r->frames), *end = r->frames.at + r->frames.len;
    for (const struct frame *f = first; f < end && f < first + CHAIN_FRAMES && strcmp(name, "main"); f++) {
        buf_addstr(b, f > first ? " < " : "");
        name = frame_function(r->p, f, scratch);
        text_add_name(b, r->style, name);
    }
}

static void add_row(struct columns *g, struct rows *r, const struct profile_free *f)
{
    char text[UNITS_TEXT_BYTES];
    const struct profile *p = r->p;
    const struct profile_cell *c = &p->cells.at[f->cell];
    const struct profile_image *i = &p->images.at[c->image];
    struct buf cell = BUF_INIT;
    columns_row(g);
    text_add_moment(&cell, f->freed_ns);
    columns_cell(g, &cell);
    buf_addstr(&cell, units_format_duration(text, (double)address_info_lifetime_ns(f)));
    columns_cell(g, &cell);
    buf_addstr(&cell, units_format_size(text, (double)f->size_bytes));
    columns_cell(g, &cell);
    if (!r->exact) {
        buf_addstr(&cell, units_format_count(text, rollup_weight(f->size_bytes, c->period_bytes)));
        columns_cell(g, &cell);
    }
    buf_printf(&cell, "0x%" PRIx64, f->address);
    columns_cell(g, &cell);
    frames_of(&r->frames, p, c->stack);
    add_owner(&cell, r);
    columns_cell(g, &cell);
    buf_addstr(&cell, f->reallocated ? "realloc" : "free");
    columns_cell(g, &cell);
    if (common_freer(&r->frames, p, f))
        add_freer(&cell, r);
    else
        buf_addch(&cell, '-');
    columns_cell(g, &cell);
    if (f->thread != PROFILE_NONE)
        common_add_thread(&cell, r->style, p, f->thread);
    columns_cell(g, &cell);
    if (r->processes) {
        text_add_name(&cell, r->style, profile_text(p, i->comm));
        buf_printf(&cell, " %d", i->pid);
        columns_cell(g, &cell);
    }
}

/* "12,345 sampled blocks freed, of which the last 512 are remembered, the oldest from 3 s before ..." */
static void add_memory(struct buf *b, const struct profile *p, const struct profile_summary *f)
{
    char reach[UNITS_TEXT_BYTES];
    struct address_info_frees k = address_info_frees_of(p);
    const char *what = profile_summary_exact(f) ? "block" : "sampled block";
    text_add_number(b, k.freed, what);
    buf_addstr(b, " freed");
    if (k.freed && !k.remembered) {
        buf_addstr(b, ", of which none is remembered");
    } else if (k.freed != k.remembered) {
        buf_addstr(b, ", of which the last ");
        text_add_number(b, k.remembered, NULL);
        buf_addstr(b, " are remembered");
    }
    if (k.remembered)
        buf_printf(b, ", the oldest from %s before the last snapshot",
                   units_format_duration(reach, (double)k.reach_ns));
}

static void write_line(struct sink *out, const struct text_style *style, struct buf *b)
{
    text_paragraph(out, style, "", INDENT, buf_str(b));
    buf_reset(b);
}

static void write_header(struct sink *out, const struct profile *p, const struct profile_summary *f,
                         const struct frees_options *o)
{
    const struct text_style *style = &o->style;
    struct buf b = BUF_INIT;
    report_add_title(&b, p, f, style);
    sink_printf(out, "%s%s%s\n", text_begin(style, TEXT_STRONG), buf_str(&b), text_end(style, TEXT_STRONG));
    buf_reset(&b);
    text_add_name(&b, style, o->source);
    write_line(out, style, &b);
    report_add_period(&b, f, style);
    if (f->period_high && !profile_summary_exact(f))
        buf_addstr(&b, "; STANDS FOR: the number of frees that a row represents");
    write_line(out, style, &b);
    add_memory(&b, p, f);
    write_line(out, style, &b);
    if (f->past) {
        buf_addstr(&b, "for a past moment only the frees are known that were still remembered at the end");
        write_line(out, style, &b);
    }
    if (o->filter) {
        buf_addstr(&b, "only ");
        text_add_name(&b, style, o->filter);
        write_line(out, style, &b);
    }
    buf_release(&b);
}

void frees_write(struct sink *out, const struct profile *p, const uint32_t *order, size_t n,
                 const struct frees_options *o)
{
    struct profile_summary f = profile_summary_of(p);
    struct rows r = {
        .p = p, .style = &o->style, .exact = profile_summary_exact(&f), .processes = p->images.len > 1};
    struct columns g = {.style = &o->style, .indent = INDENT};
    size_t shown = o->top && o->top < n ? o->top : n;
    write_header(out, p, &f, o);
    sink_printf(out, "\n%sFreed, latest first%s\n", text_begin(&o->style, TEXT_STRONG),
                text_end(&o->style, TEXT_STRONG));
    add_columns(&g, &r);
    for (size_t i = 0; i < shown; i++)
        add_row(&g, &r, &p->frees.at[order[i]]);
    if (shown)
        columns_write(&g, out);
    else
        sink_printf(out, "%*snothing\n", INDENT, "");
    if (shown < n)
        sink_printf(out, "%*s%s%s %zu more%s\n", INDENT, "", text_begin(&o->style, TEXT_FAINT),
                    text_dots(&o->style), n - shown, text_end(&o->style, TEXT_FAINT));
    columns_release(&g);
    vec_release(&r.frames);
}
