/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/profile/who_view.h"

#include <inttypes.h>

#include "base/units.h"
#include "view/profile/common.h"
#include "view/profile/report_parts.h"
#include "view/text/columns.h"

#define INDENT       2
#define STACK_INDENT 6
#define CHANCE_RARE  0.1 /* smaller chances are written as "1 in 513", not as a percentage */

const uint64_t who_sizes[] = {16, 256, 4096, 65536, 1048576, 0};

struct screen {
    struct sink *out;
    const struct address_info *w;
    const struct profile *p;
    const struct who_options *o;
    struct profile_summary facts;
    struct buf b; /* the line or paragraph in progress */
};

/* Writes the contents of the buffer, and empties it. */
static void write_words(struct screen *s)
{
    text_paragraph(s->out, &s->o->style, "", INDENT, buf_str(&s->b));
    buf_reset(&s->b);
}

static void write_heading(struct screen *s)
{
    const struct text_style *style = &s->o->style;
    sink_text(s->out, text_begin(style, TEXT_STRONG));
    text_paragraph(s->out, style, "", 0, buf_str(&s->b));
    sink_text(s->out, text_end(style, TEXT_STRONG));
    buf_reset(&s->b);
}

/* ---- a block ---- */

static void add_where(struct screen *s, const struct address_info_block *b, uint64_t address, uint64_t size)
{
    struct buf *out = &s->b;
    if (b->place == ADDRESS_INFO_INSIDE && !b->bytes)
        buf_addstr(out, "the first byte of the ");
    else if (!b->bytes)
        buf_addstr(out, "the first byte past the ");
    else
        text_add_number(out, b->bytes, "byte");
    if (b->bytes)
        buf_addstr(out, b->place == ADDRESS_INFO_INSIDE   ? " into the "
                        : b->place == ADDRESS_INFO_BEFORE ? " before the "
                                                          : " past the end of the ");
    text_add_number(out, size, "byte");
    buf_printf(out, " at 0x%" PRIx64, address);
}

/* "Freed in server (pid 4711): 4 bytes into the 48 bytes at 0x55d0c0a2b6d0" */
static void write_block_heading(struct screen *s, const struct address_info_block *b,
                                const struct profile_cell *c, uint64_t address, uint64_t size)
{
    const struct profile_image *i = &s->p->images.at[c->image];
    buf_addstr(&s->b, b->live ? "Live in " : "Freed in ");
    text_add_name(&s->b, &s->o->style, profile_text(s->p, i->comm));
    buf_printf(&s->b, " (pid %d): ", i->pid);
    add_where(s, b, address, size);
    write_heading(s);
}

/* "3.2 s ago", "3.2 s before the end" */
static void add_before(struct screen *s, const struct profile_cell *c, uint64_t ns)
{
    char text[UNITS_TEXT_BYTES];
    const struct profile_image *i = &s->p->images.at[c->image];
    buf_printf(&s->b, "%s %s", units_format_duration(text, (double)ns),
               i->past                             ? "before that moment"
               : i->state == PROFILE_IMAGE_RUNNING ? "ago"
                                                   : "before the end");
}

static void write_frames(struct screen *s, const struct frames *frames)
{
    common_stack(s->out, &s->o->style, s->p, frames, s->o->frames, STACK_INDENT);
}

static void write_allocator(struct screen *s, const struct profile_cell *c)
{
    struct frames frames = {0};
    buf_addstr(&s->b, "allocated by thread ");
    common_add_thread(&s->b, &s->o->style, s->p, c->thread);
    write_words(s);
    frames_of(&frames, s->p, c->stack);
    write_frames(s, &frames);
    vec_release(&frames);
}

static void write_live(struct screen *s, const struct address_info_block *b)
{
    char age[UNITS_TEXT_BYTES];
    const struct profile_sample *v = &s->p->samples.at[b->index];
    const struct profile_cell *c = &s->p->cells.at[v->cell];
    const struct profile_image *i = &s->p->images.at[c->image];
    write_block_heading(s, b, c, v->address, v->size_bytes);
    buf_printf(&s->b, "%s old ", units_format_duration(age, (double)profile_age_ns(s->p, v)));
    buf_addstr(&s->b, i->past ? "then" : i->state == PROFILE_IMAGE_RUNNING ? "now" : "at the end");
    if (b->place == ADDRESS_INFO_SLACK) {
        buf_addstr(&s->b, ", and the allocator added ");
        text_add_number(&s->b, v->slack_bytes, "byte");
        buf_addstr(&s->b, " of slack: a write to this address is an overflow");
    }
    write_words(s);
    write_allocator(s, c);
}

static void write_freer(struct screen *s, const struct profile_free *f)
{
    struct frames frames = {0};
    if (common_freer(&frames, s->p, f))
        write_frames(s, &frames);
    if (f->stack == PROFILE_NONE) {
        const struct text_style *style = &s->o->style;
        sink_repeat(s->out, ' ', STACK_INDENT);
        sink_printf(s->out, "%s%s%s\n", text_begin(style, TEXT_FAINT),
                    frames.len ? "[its callers were not recorded]" : "[unknown]",
                    text_end(style, TEXT_FAINT));
    }
    vec_release(&frames);
}

static void write_freed(struct screen *s, const struct address_info_block *b)
{
    char life[UNITS_TEXT_BYTES];
    const struct profile_free *f = &s->p->frees.at[b->index];
    const struct profile_cell *c = &s->p->cells.at[f->cell];
    write_block_heading(s, b, c, f->address, f->size_bytes);
    buf_addstr(&s->b, f->reallocated ? "moved or resized by realloc " : "freed ");
    add_before(s, c, address_info_freed_before_ns(s->p, f));
    buf_addstr(&s->b, ", at ");
    text_add_clock(&s->b, f->freed_ns);
    buf_printf(&s->b, ", after a lifetime of %s",
               units_format_duration(life, (double)address_info_lifetime_ns(f)));
    if (f->thread != PROFILE_NONE) {
        buf_addstr(&s->b, ", by thread ");
        common_add_thread(&s->b, &s->o->style, s->p, f->thread);
    }
    write_words(s);
    write_freer(s, f);
    write_allocator(s, c);
}

static void write_block(struct screen *s, const struct address_info_block *b)
{
    sink_char(s->out, '\n');
    if (b->live)
        write_live(s, b);
    else
        write_freed(s, b);
}

/* ---- what is not known ---- */

static void add_chance(struct buf *b, double chance)
{
    if (chance >= 1) {
        buf_addstr(b, "surely");
    } else if (chance < CHANCE_RARE) {
        buf_addstr(b, "1 in ");
        text_add_number(b, (uint64_t)(1 / chance + 0.5), NULL);
    } else {
        buf_printf(b, chance > 0.995 ? "%.2f %%" : "%.0f %%", 100 * chance > 99.99 ? 99.99 : 100 * chance);
    }
}

static void add_chance_row(struct columns *g, uint64_t size, uint64_t period)
{
    char text[UNITS_TEXT_BYTES];
    struct buf cell = BUF_INIT;
    columns_row(g);
    buf_addstr(&cell, units_format_size(text, (double)size));
    columns_cell(g, &cell);
    add_chance(&cell, address_info_chance(size, period));
    columns_cell(g, &cell);
}

static void write_chances(struct screen *s)
{
    const struct profile_summary *f = &s->facts;
    struct columns g = {.style = &s->o->style, .indent = STACK_INDENT, .bare = true};
    if (!f->period_high) {
        buf_addstr(
            &s->b,
            "Nothing was sampled, and the period is not known: the chance of a sample cannot be given.");
        write_words(s);
        return;
    }
    if (profile_summary_exact(f))
        return;
    report_add_period(&s->b, f, &s->o->style);
    buf_printf(&s->b, ": the chance that a block of this size is a sample, and so is known%s",
               f->period_low == f->period_high ? "" : " (at the longest of these periods)");
    write_words(s);
    columns_column(&g, (struct columns_column){.header = ""});
    columns_column(&g, (struct columns_column){.header = ""});
    if (s->o->size_bytes != UINT64_MAX)
        add_chance_row(&g, s->o->size_bytes, f->period_high);
    for (const uint64_t *size = who_sizes; *size && s->o->size_bytes == UINT64_MAX; size++)
        add_chance_row(&g, *size, f->period_high);
    columns_write(&g, s->out);
    columns_release(&g);
}

/* Writes how many frees are remembered. Returns whether all are. */
static bool write_memory(struct screen *s)
{
    char reach[UNITS_TEXT_BYTES];
    struct address_info_frees k = address_info_frees_of(s->p);
    const char *what = profile_summary_exact(&s->facts) ? "" : " of samples";
    bool all = k.freed == k.remembered;
    buf_addstr(&s->b, all ? "There " : "Of ");
    if (all)
        buf_addstr(&s->b, k.freed == 1 ? "was " : "were ");
    text_add_number(&s->b, k.freed, "free");
    buf_addstr(&s->b, what);
    if (all && k.freed)
        buf_addstr(&s->b, ", all remembered.");
    else if (all)
        buf_addstr(&s->b, ".");
    if (!k.remembered && !all) {
        buf_addstr(&s->b, " none is remembered.");
    } else if (!all) {
        buf_addstr(&s->b, " the last ");
        text_add_number(&s->b, k.remembered, NULL);
        buf_printf(&s->b,
                   " are remembered, the oldest from %s before the last snapshot; the history of threads "
                   "that free often is shorter.",
                   units_format_duration(reach, (double)k.reach_ns));
    }
    write_words(s);
    return all;
}

static void write_unknown(struct screen *s)
{
    const struct profile_summary *f = &s->facts;
    sink_char(s->out, '\n');
    write_chances(s);
    bool all = write_memory(s);
    if (f->losses[PROFILE_LOST_SAMPLES] || f->losses[PROFILE_LOST_LIVE] || f->torn_samples) {
        buf_addstr(&s->b, "Some samples are missing, see the end of `allium report`.");
        write_words(s);
    }
    if (!profile_summary_exact(f))
        buf_addstr(&s->b, "To be certain, run the program again and sample each allocation: allium run "
                          "--period 1 -- PROGRAM");
    else if (f->past)
        buf_addstr(&s->b, "Use the end of the recording: leave out @TIME.");
    else if (all)
        buf_addstr(&s->b, "Every allocation was sampled: malloc returned no block there.");
    else
        buf_addstr(&s->b, "Every allocation was sampled: malloc returned no block there, or its free is no "
                          "longer remembered; ask sooner after the free.");
    write_words(s);
}

/* ---- the whole ---- */

static void write_title(struct screen *s)
{
    const struct address_info *w = s->w;
    buf_printf(&s->b, "0x%" PRIx64 " in ", w->address);
    text_add_name(&s->b, &s->o->style, s->o->source);
    if (!w->holding.len)
        buf_addstr(&s->b, ": in no known block, live or freed");
    write_heading(s);
    if (s->facts.main_image != PROFILE_NONE && w->holding.len) {
        report_add_period(&s->b, &s->facts, &s->o->style);
        if (!profile_summary_exact(&s->facts) && !w->holding.at[0].live)
            buf_addstr(&s->b, ": a block that was not sampled may have been there since");
        write_words(s);
    }
    if (s->facts.past) {
        buf_addstr(
            &s->b,
            "for a past moment only the blocks are known that were also live, or freed lately, at the end");
        write_words(s);
    }
}

void who_write(struct sink *out, const struct address_info *w, const struct profile *p,
               const struct who_options *o)
{
    struct screen s = {.out = out, .w = w, .p = p, .o = o, .facts = profile_summary_of(p), .b = BUF_INIT};
    size_t shown = o->top && o->top < w->holding.len ? o->top : w->holding.len;
    write_title(&s);
    for (size_t i = 0; i < shown; i++)
        write_block(&s, &w->holding.at[i]);
    if (shown < w->holding.len) {
        buf_printf(&s.b, "%s %zu more, freed before these", text_dots(&o->style), w->holding.len - shown);
        sink_char(out, '\n');
        write_words(&s);
    }
    if (w->near.len) {
        sink_char(out, '\n');
        buf_printf(&s.b,
                   "Blocks within %d bytes, which do not contain the address, but may have been overrun",
                   ADDRESS_INFO_NEAR_BYTES);
        write_heading(&s);
    }
    vec_each (const struct address_info_block, b, &w->near)
        write_block(&s, b);
    if (!w->holding.len)
        write_unknown(&s);
    buf_release(&s.b);
}
