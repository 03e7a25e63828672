/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_report.h"

#include <stdio.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "cli/command.h"
#include "cli/sys/sys_charge.h"
#include "cli/sys/sys_page.h"
#include "cli/sys/sys_regroup.h"
#include "cli/terminal.h"
#include "store/profile_load.h"
#include "view/formats/json.h"
#include "view/table/table_folded.h"

#define JSON_VERSION 1
#define COMMIT_NS    1000000000u

/* A recording gets all rows that --where lets pass, whatever is shown of them, and is committed so often that a crash
 * takes no more than that along. */
static void record(struct sys_report *r)
{
    struct error e = {""};
    char name[64];
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (!r->o->recording)
        return;
    snprintf(name, sizeof(name), "sys_%s", r->tool->name);
    int bad = recording_put_rows(r->o->recording, name, r->table, clock_ns(CLOCK_REALTIME), &e);
    r->recorded += table_rows(r->table);
    if (!bad && now - r->committed_ns >= COMMIT_NS) {
        bad = recording_commit(r->o->recording, &e);
        r->committed_ns = now;
    }
    if (bad) {
        r->code = command_fail(EXIT_FAILED, "%s", e.text);
        r->over = true;
    }
}

/* "--- 5.00 s after the start, the last 5.00 s: 10 of 133 events" */
static void put_heading(struct sys_report *r)
{
    if (r->o->slab_account)
        buf_reset(&r->heading);
    if (!r->heading.len)
        return;
    if (r->shown < r->all || r->tool->event)
        buf_addstr(&r->heading, ": ");
    if (r->shown < r->all) {
        text_add_number(&r->heading, r->shown, NULL);
        buf_addstr(&r->heading, " of ");
    }
    if (r->shown < r->all || r->tool->event)
        text_add_number(&r->heading, r->all, r->tool->event ? "event" : "row");
    sink_printf(&r->out, "%s\n", buf_str(&r->heading));
    buf_reset(&r->heading);
}

/* All rows of a table that is sorted and cut. */
static void draw(struct sys_report *r, const struct table *all)
{
    struct table shown = *all, *t = &shown;
    if (r->unwritable)
        return;
    t->hidden |= r->o->columns ? ~r->o->columns : 0;
    put_heading(r);
    if (r->o->slab_account)
        sys_charge_write_slab_account(r->tool->charge, t, &r->out);
    else if (r->o->folded)
        table_folded_write(&r->out, t, r->tool->weight);
    else if (r->o->json)
        for (uint32_t row = 0; row < table_rows(t); row++)
            table_view_json_row_at(&r->out, t, row, r->report_ns);
    else if (r->tool->event)
        table_stream_write(&r->stream, &r->out, t, &r->style);
    else
        table_view_text(&r->out, t, &r->style);
    if (sink_finish(&r->out)) {
        r->unwritable = true;
        r->over = !r->o->recording;
    }
}

void sys_report_write(struct sys_report *r)
{
    const struct sys_show *o = r->o;
    struct table *t = r->table;
    if (o->depth)
        sys_regroup_cut(r->tool, o->depth, t);
    if (o->charge_allocator && o->session)
        sys_read_counts(o->session);
    if (o->charge_allocator)
        sys_charge_allocator(r->tool->charge, !o->session || !o->session->counted[SYS_LIVE_FULL], t);
    table_query_apply(&o->where, t);
    r->any = r->any || table_rows(t);
    record(r);
    if (o->page)
        sys_page_add(o->page, t, r->taken_ns ? r->taken_ns : clock_ns(CLOCK_REALTIME));
    if (r->tool->event && o->histogram)
        table_measure_add(&r->measured, r->tool->measure->columns, t);
    else if (r->tool->event && o->keep)
        event_buffer_add(&r->kept, t);
    else if (!r->unshown && !r->unwritable) {
        r->all = table_rows(t);
        if (!r->tool->event)
            table_sort(t, o->sort, o->order);
        if (!r->tool->event && o->top)
            table_cut(t, o->top);
        r->shown = table_rows(t);
        draw(r, t);
    }
    table_clear(t);
}

void sys_report_events(struct sys_report *r)
{
    struct event_buffer *k = &r->kept;
    if (!r->o->keep && !r->o->histogram)
        return;
    if (r->o->histogram) {
        r->all = r->shown = r->measured.rows;
        put_heading(r);
        struct table *t = table_measure_table(&r->measured, r->tool->measure->summary);
        if (r->o->json)
            table_view_json_row_at(&r->out, t, 0, r->report_ns);
        else
            table_view_text(&r->out, t, &r->style);
        table_free(t);
        r->measured = (struct table_measure){0};
        return;
    }
    r->all = k->come;
    event_buffer_sort(k);
    r->shown = table_rows(k->table);
    r->stream.rows = 0;
    draw(r, k->table);
    event_buffer_clear(k);
}

void sys_report_say_cut(const struct sys_report *r)
{
    const struct sys_show *o = r->o;
    bool reported = o->interval_ns || r->kept.not_stored;
    struct buf b = BUF_INIT;
    if (r->shown >= r->all || reported || o->quiet || o->json)
        return;
    text_add_number(&b, r->shown, NULL);
    buf_addstr(&b, " of ");
    text_add_number(&b, r->all, r->tool->event ? "event" : "row");
    fprintf(stderr, "allium: %s are shown; --top 0 shows all\n", buf_str(&b));
    buf_release(&b);
}

void sys_report_begin_json(struct sys_report *r)
{
    struct json j = {.out = &r->out, .line = true};
    struct buf name = BUF_INIT;
    buf_printf(&name, "allium-sys-%s", r->tool->name);
    json_open(&j, NULL, '{');
    json_text(&j, "schema", buf_str(&name));
    json_whole(&j, "version", JSON_VERSION);
    json_close(&j, '}');
    buf_release(&name);
}

void sys_report_begin(struct sys_report *r, struct sys_show *o, const struct sys_tool *tool)
{
    *r = (struct sys_report){.o = o, .tool = tool};
    r->out = sink_to_file(stdout);
    r->style = terminal_style(stdout);
    r->table = table_new("sys", 1, tool->columns, tool->n_columns);
    r->table->hidden = o->hidden;
    r->stream.repeat = isatty(STDOUT_FILENO);
    if (!o->keep)
        return;
    r->kept = (struct event_buffer){
        .sort = o->sort, .order = o->order, .top = o->top, .room = o->room ? o->room : EVENT_BUFFER_DEFAULT};
    r->kept.table = table_new("sys", 1, tool->columns, tool->n_columns);
    r->kept.table->hidden = o->hidden;
}

void sys_report_end(struct sys_report *r)
{
    table_free(r->table);
    event_buffer_release(&r->kept);
    buf_release(&r->heading);
}

void sys_report_resize(struct sys_report *r)
{
    r->style = terminal_style(stdout);
}
