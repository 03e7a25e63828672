/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/profile/common.h"

#include <math.h>

#include "base/units.h"
#include "model/profile/rollup.h"
#include "view/text/columns.h"

void common_add_place(struct buf *b, const struct text_style *style, const struct profile *p,
                      const struct frame *f)
{
    const char *file = frame_file(p, f), *module = frame_module(p, f);
    if (*file) {
        text_add_name(b, style, frame_basename(file));
        if (frame_line(p, f))
            buf_printf(b, ":%u", frame_line(p, f));
    } else if (*module) {
        buf_addch(b, '(');
        text_add_name(b, style, frame_basename(module));
        buf_addch(b, ')');
    }
    if (frame_inlined(p, f))
        buf_addstr(b, " inlined");
}

static void add_frame(struct columns *g, const struct profile *p, const struct frame *f)
{
    char scratch[FRAME_NAME_BYTES];
    struct buf cell = BUF_INIT;
    columns_row(g);
    text_add_name(&cell, g->style, frame_function(p, f, scratch));
    columns_cell(g, &cell);
    common_add_place(&cell, g->style, p, f);
    columns_cell(g, &cell);
}

void common_stack(struct sink *out, const struct text_style *style, const struct profile *p,
                  const struct frames *frames, uint32_t most, unsigned indent)
{
    struct columns g = {.style = style, .indent = indent, .bare = true};
    columns_column(&g, (struct columns_column){.header = "", .left = true, .elastic = true});
    columns_column(&g, (struct columns_column){.header = "", .left = true, .look = TEXT_FAINT});
    size_t shown = most && frames->len > most + 1 ? most : frames->len;
    for (size_t i = 0; i < shown; i++)
        add_frame(&g, p, &frames->at[i]);
    columns_write(&g, out);
    if (shown < frames->len) {
        const struct frame *last = &frames->at[frames->len - 1];
        char scratch[FRAME_NAME_BYTES];
        sink_repeat(out, ' ', indent);
        sink_printf(out, "%s%s %zu more frames", text_begin(style, TEXT_FAINT), text_dots(style),
                    frames->len - shown);
        if (last->location == PROFILE_NONE)
            sink_printf(out, ", then %s", frame_function(p, last, scratch));
        sink_printf(out, "%s\n", text_end(style, TEXT_FAINT));
    }
    columns_release(&g);
}

void common_add_thread(struct buf *b, const struct text_style *style, const struct profile *p,
                       uint32_t thread)
{
    const struct profile_thread *t = &p->threads.at[thread];
    const char *name = profile_text(p, t->name);
    if (!t->tid) {
        buf_addstr(b, "unknown"); /* a thread for which the ledger had no room */
        return;
    }
    text_add_name(b, style, name);
    buf_printf(b, "%s%d", *name ? " " : "", t->tid);
}

bool common_freer(struct frames *out, const struct profile *p, const struct profile_free *f)
{
    out->len = 0;
    if (f->stack != PROFILE_NONE)
        frames_of(out, p, f->stack);
    else if (f->location != PROFILE_NONE)
        frames_at(out, p, f->location);
    return out->len != 0;
}

/* ---- JSON ---- */

static void write_frame(struct json *j, const struct profile *p, const struct frame *f, bool addresses)
{
    char scratch[FRAME_NAME_BYTES];
    json_open(j, NULL, '{');
    json_text(j, "function", frame_function(p, f, scratch));
    json_text(j, "file", common_known(frame_file(p, f)));
    common_whole_or_null(j, "line", frame_line(p, f) != 0, frame_line(p, f));
    json_flag(j, "inlined", frame_inlined(p, f));
    json_text(j, "module", common_known(frame_module(p, f)));
    if (addresses && f->location != PROFILE_NONE && *frame_module(p, f))
        json_hex(j, "address", p->locations.at[f->location].address);
    else
        json_null(j, "address");
    json_close(j, '}');
}

static void write_frames(struct json *j, const struct profile *p, const char *end,
                         const struct frames *frames, bool addresses)
{
    json_text(j, "stack_end", end);
    json_open(j, "stack", '[');
    vec_each (const struct frame, f, frames)
        if (f->location != PROFILE_NONE)
            write_frame(j, p, f, addresses);
    json_close(j, ']');
}

void common_stack_json(struct json *j, const struct profile *p, uint32_t stack, bool addresses)
{
    static const char *const ends[] = {
        [PROFILE_STACK_WHOLE] = "whole",     [PROFILE_STACK_CUT] = "cut",
        [PROFILE_STACK_NO_CODE] = "no_code", [PROFILE_STACK_NO_RULE] = "no_rule",
        [PROFILE_STACK_BROKEN] = "broken",
    };
    struct frames frames = {0};
    frames_of(&frames, p, stack);
    write_frames(j, p, ends[p->stacks.at[stack].end], &frames, addresses);
    vec_release(&frames);
}

void common_periods_json(struct json *j, const struct profile *p, const struct profile_summary *f)
{
    uint64_t last = 0;
    json_open(j, "periods_bytes", '[');
    for (;;) {
        uint64_t next = UINT64_MAX;
        vec_each (const struct profile_cell, c, &p->cells)
            if (c->period_bytes > last && c->period_bytes < next)
                next = c->period_bytes;
        if (next == UINT64_MAX)
            break;
        json_whole(j, NULL, next);
        last = next;
    }
    if (!last && f->period_high)
        json_whole(j, NULL, f->period_high);
    json_close(j, ']');
}

static void write_thread(struct json *j, const struct profile *p, uint32_t thread)
{
    const struct profile_thread *t = thread == PROFILE_NONE ? NULL : &p->threads.at[thread];
    common_whole_or_null(j, "tid", t && t->tid, t ? (uint64_t)t->tid : 0);
    json_text(j, "thread", t ? common_known(profile_text(p, t->name)) : NULL);
}

static void write_freer(struct json *j, const struct profile *p, const struct profile_free *f)
{
    struct frames frames = {0};
    json_open(j, "freed_by", '{');
    write_thread(j, p, f->thread);
    if (f->stack != PROFILE_NONE) {
        common_stack_json(j, p, f->stack, true);
    } else {
        common_freer(&frames, p, f);
        write_frames(j, p, "caller", &frames, true);
    }
    json_close(j, '}');
    vec_release(&frames);
}

void common_block_json(struct json *j, const struct profile *p, bool live, uint32_t index)
{
    const struct profile_sample *s = live ? &p->samples.at[index] : NULL;
    const struct profile_free *f = live ? NULL : &p->frees.at[index];
    const struct profile_cell *c = &p->cells.at[live ? s->cell : f->cell];
    const struct profile_image *i = &p->images.at[c->image];
    uint64_t size = live ? s->size_bytes : f->size_bytes, born_ns = live ? s->born_ns : f->born_ns;
    bool slack_known = live && !i->past && s->slack_bytes != PROFILE_SLACK_UNKNOWN;
    json_text(j, "state", live ? "live" : "freed");
    json_hex(j, "address", live ? s->address : f->address);
    json_whole(j, "size_bytes", size);
    common_whole_or_null(j, "slack_bytes", slack_known, live ? s->slack_bytes : 0);
    json_whole(j, "period_bytes", c->period_bytes);
    json_real(j, "weight", rollup_weight(size, c->period_bytes));
    json_hex(j, "image", i->id);
    json_signed(j, "pid", i->pid);
    json_text(j, "program", profile_text(p, i->comm));
    json_instant(j, "born_ns", born_ns);
    json_instant(j, "freed_ns", live ? 0 : f->freed_ns);
    json_whole(j, "lifetime_ns", live ? profile_age_ns(p, s) : address_info_lifetime_ns(f));
    json_flag(j, "reallocated", !live && f->reallocated);
    json_open(j, "allocated_by", '{');
    write_thread(j, p, c->thread);
    common_stack_json(j, p, c->stack, true);
    json_close(j, '}');
    if (live)
        json_null(j, "freed_by");
    else
        write_freer(j, p, f);
}

void common_wall_step(struct buf *b, int64_t step_ns)
{
    char text[UNITS_TEXT_BYTES];
    if (step_ns)
        buf_printf(
            b,
            "the time of day was set %s by %s while the trace was recorded: its times are those of the clock "
            "as it was at the beginning",
            step_ns < 0 ? "back" : "forward", units_format_duration(text, fabs((double)step_ns)));
}

void common_mark(struct buf *b, bool is_bound)
{
    if (is_bound)
        buf_addch(b, '~');
}
