/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "model/accounts/allocinfo_table.h"
#include "view/accounts/accounts_shown.h"
#include "view/formats/json.h"
#include "view/table/table_view.h"

/* ---- of programs ---- */

static void write_sum(struct json *j, const char *key, const struct account_sum *sum, bool of_sites)
{
    json_open(j, key, '{');
    json_whole(j, "sites", sum->places);
    json_whole(j, "inexact", sum->inexact);
    json_signed(j, "live_bytes", account_live_bytes(sum));
    json_signed(j, "live_objects", account_live_objects(sum));
    if (sum->of[ACCOUNT_PEAK_BYTES]) {
        json_whole(j, "peak_bytes", sum->of[ACCOUNT_PEAK_BYTES]);
        json_whole(j, "peak_high_bytes", sum->of[ACCOUNT_PEAK_HIGH_BYTES]);
    }
    json_whole(j, "allocated_bytes", sum->of[ACCOUNT_ALLOCATED_BYTES]);
    json_whole(j, "allocations", sum->of[ACCOUNT_ALLOCATED_CALLS]);
    json_whole(j, "failed", sum->of[ACCOUNT_FAILED]);
    if (of_sites) {
        if (account_slack_is_known(sum))
            json_whole(j, "total_bytes", sum->of[ACCOUNT_ALLOCATED_USABLE]);
        else
            json_null(j, "total_bytes");
        json_whole(j, "frees", sum->of[ACCOUNT_RELEASED_CALLS]);
        json_whole(j, "freed_here_bytes", sum->of[ACCOUNT_FREED_BY_SITE_BYTES]);
        json_whole(j, "frees_here", sum->of[ACCOUNT_FREED_BY_SITE_CALLS]);
    }
    json_close(j, '}');
}

static void write_process(struct json *j, const struct account_process *p)
{
    static const char *const losses[ACCOUNT_LOSSES] = {
        [ACCOUNT_LOST_PLACES] = "lost_places",      [ACCOUNT_LOST_OBJECTS] = "lost_objects",
        [ACCOUNT_LOST_FREES] = "lost_frees_unseen", [ACCOUNT_LOST_RECORDS] = "damaged_records",
        [ACCOUNT_FOREIGN_FREES] = "foreign_frees",  [ACCOUNT_LOST_VERSIONS] = "other_version"};
    json_open(j, NULL, '{');
    json_whole(j, "pid", (uint64_t)p->pid);
    json_text(j, "program", p->comm);
    json_flag(j, "running", p->alive);
    json_hex(j, "image", p->image_id);
    json_instant(j, "taken_ns", p->taken_ns);
    for (int i = 0; i < ACCOUNT_LOSSES; i++)
        json_whole(j, losses[i], p->losses[i]);
    json_close(j, '}');
}

static void put_reading(struct json *j, const struct shown *s, enum account_moment moment)
{
    const struct accounts_reading *r = s->of[moment];
    bool of_sites = s->o->shape.kind == ACCOUNT_OF_SITES;
    json_text(j, "source", r->label);
    json_open(j, "processes", '[');
    vec_each (const struct account_process, p, &r->accounts.processes)
        write_process(j, p);
    json_close(j, ']');
    write_sum(j, "total", &s->whole.of[moment], of_sites);
    write_sum(j, "where", &s->total.of[moment], of_sites);
}

/* ---- of the kernel ---- */

static void put_kernel_sum(struct json *j, const struct account_sum *sum)
{
    json_whole(j, "sites", sum->places);
    json_whole(j, "inexact", sum->inexact);
    json_signed(j, "size_bytes", account_live_bytes(sum));
    json_whole(j, "calls", sum->of[ACCOUNT_ALLOCATED_CALLS]);
}

/* Writes the text that was read, its sums, and its malformed lines. */
static void put_kernel_reading(struct json *j, const struct shown *s, enum account_moment moment)
{
    const struct accounts_reading *r = s->of[moment];
    const struct account_text *text = &r->accounts.text;
    char format[32];
    snprintf(format, sizeof(format), "%u.%u", text->version, text->minor);
    json_text(j, "source", r->label);
    json_text(j, "format", format);
    put_kernel_sum(j, &s->whole.of[moment]);
    json_whole(j, "malformed_lines", text->bad_lines);
    json_open(j, "malformed", '[');
    for (uint64_t i = 0; i < text->bad_lines && i < ACCOUNT_BAD_LINES; i++) {
        json_open(j, NULL, '{');
        json_whole(j, "line", text->bad[i].line);
        json_text(j, "why", text->bad[i].why);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_flag(j, "cut", text->cut);
}

static void write_kernel_total(struct json *j, const struct shown *s)
{
    const struct account_row *total = &s->total;
    json_open(j, "total", '{');
    put_kernel_sum(j, &total->of[ACCOUNT_AFTER]);
    if (s->o->shape.view == ACCOUNT_CHANGE) {
        json_signed(j, "before_bytes", allocinfo_bytes(total, ACCOUNT_BEFORE));
        json_signed(j, "change_bytes", allocinfo_bytes_change(total));
        json_signed(j, "calls_change", allocinfo_calls_change(total));
    } else if (s->o->shape.view == ACCOUNT_RATE) {
        json_real(j, "size_bytes_per_s", (double)allocinfo_bytes_change(total) / s->o->shape.seconds);
        json_real(j, "calls_per_s", (double)allocinfo_calls_change(total) / s->o->shape.seconds);
    }
    json_close(j, '}');
}

/* ---- all of it ---- */

static void write_reading(struct json *j, const struct shown *s, enum account_moment moment)
{
    const char *key = moment == ACCOUNT_BEFORE ? "before" : "after";
    if (!s->of[moment]) {
        json_null(j, key);
        return;
    }
    json_open(j, key, '{');
    if (s->o->shape.kind == ACCOUNT_OF_KERNEL)
        put_kernel_reading(j, s, moment);
    else
        put_reading(j, s, moment);
    json_close(j, '}');
}

/*
 * Writes the times: for the kernel, the time of the reading and the time since the last one; for programs, the time
 * between two readings.
 */
static void write_times(struct json *j, const struct accounts_view *o)
{
    if (o->shape.kind != ACCOUNT_OF_KERNEL) {
        json_real(j, "seconds", o->shape.seconds);
        return;
    }
    json_instant(j, "time_ns", o->time_ns);
    if (o->elapsed_ns)
        json_whole(j, "interval_ns", o->elapsed_ns);
    else
        json_null(j, "interval_ns");
}

static void write_conditions(struct json *j, const struct accounts_view *o)
{
    json_open(j, "conditions", '[');
    for (size_t i = 0; i < o->n_growth; i++) {
        json_open(j, NULL, '{');
        json_text(j, "condition", o->growth[i].condition);
        json_flag(j, "met", o->growth[i].met);
        json_close(j, '}');
    }
    json_close(j, ']');
}

void accounts_json_write(const struct shown *s, struct sink *out, const struct table *t)
{
    const struct accounts_view *o = s->o;
    bool kernel = o->shape.kind == ACCOUNT_OF_KERNEL;
    const char *const views[] = {
        [ACCOUNT_NOW] = kernel ? "held" : "now", [ACCOUNT_CHANGE] = "change", [ACCOUNT_RATE] = "rate"};
    struct buf schema = BUF_INIT;
    struct json j = {.out = out, .line = o->line};
    buf_printf(&schema, "allium-%s", t->name);
    json_open(&j, NULL, '{');
    json_text(&j, "schema", buf_str(&schema));
    json_whole(&j, "version", t->version);
    json_text(&j, "view", views[o->shape.view]);
    write_times(&j, o);
    json_text(&j, "filter", o->query ? query_text(o->query) : NULL);
    json_text(&j, "group", o->group);
    json_text(&j, "sort", o->order);
    write_reading(&j, s, ACCOUNT_BEFORE);
    write_reading(&j, s, ACCOUNT_AFTER);
    if (kernel)
        write_kernel_total(&j, s);
    if (o->n_growth)
        write_conditions(&j, o);
    json_whole(&j, "rows_in_all", s->rows.len);
    table_view_json_rows(&j, "rows", t);
    json_close(&j, '}');
    buf_release(&schema);
}
