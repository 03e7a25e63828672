/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "view/bench/bench_view.h"
#include "view/formats/json.h"

#define VERSION 1

static void write_floor(struct json *j, const struct bench_result *result, const struct bench_row *r)
{
    const struct bench_figures f = bench_row_figures(result, r);
    json_open(j, NULL, '{');
    json_text(j, "floor", r->mechanism);
    json_real(j, "least_ns", f.least);
    json_real(j, "median_ns", f.median);
    json_real(j, "median_ns_low", f.interval.low);
    json_real(j, "median_ns_high", f.interval.high);
    json_text(j, "unavailable", r->unavailable);
    json_close(j, '}');
}

static void write_counts(struct json *j, const struct bench_row *r, bool is_known)
{
    json_whole(j, "expected", r->expected);
    if (is_known) {
        json_whole(j, "hits", r->hits);
        json_whole(j, "lost", r->lost);
        json_whole(j, "missing", bench_row_missing(r));
    } else {
        json_null(j, "hits");
        json_null(j, "lost");
        json_null(j, "missing");
    }
    json_whole(j, "turns", r->alone.turns.len);
    json_whole(j, "switched_batches", r->alone.switched + r->together.switched);
    json_whole(j, "apart_batches", r->alone.apart + r->together.apart);
    json_whole(j, "switched_calls", r->dropped_shots);
}

static void write_row(struct json *j, const struct bench_result *result, const struct bench_row *r)
{
    const struct bench_figures f = bench_row_figures(result, r);
    json_open(j, NULL, '{');
    json_text(j, "mechanism", r->mechanism);
    json_text(j, "sink", r->sink);
    if (r->has_payload)
        json_whole(j, "payload_bytes", r->payload_bytes);
    else
        json_null(j, "payload_bytes");
    json_text(j, "unavailable", r->unavailable);
    json_whole(j, "events_per_call", r->events_per_call);
    json_real(j, "least_ns", f.least);
    json_real(j, "median_ns", f.median);
    json_real(j, "median_ns_low", f.interval.low);
    json_real(j, "median_ns_high", f.interval.high);
    json_real(j, "p90_ns", f.p90);
    json_real(j, "p99_ns", f.p99);
    json_real(j, "isolated_ns", f.isolated);
    json_real(j, "cold_ns", f.cold);
    json_real(j, "together_ns", f.together);
    json_text(j, "floor", r->floor);
    json_real(j, "floor_ratio", f.ratio);
    json_real(j, "event_bytes", f.event_bytes);
    if (r->memory_bytes)
        json_whole(j, "memory_bytes", r->memory_bytes);
    else
        json_null(j, "memory_bytes");
    write_counts(j, r, r->knows_hits);
    json_close(j, '}');
}

static void write_switching(struct json *j, const struct bench_switching *s)
{
    json_open(j, NULL, '{');
    json_text(j, "name", s->name);
    json_real(j, "one_on_ns", s->few.on_ns);
    json_real(j, "one_off_ns", s->few.off_ns);
    json_real(j, "thousand_on_ns", s->many.on_ns);
    json_real(j, "thousand_off_ns", s->many.off_ns);
    json_text(j, "unavailable", s->unavailable);
    json_close(j, '}');
}

static void write_part(struct json *j, const struct bench_part *p)
{
    json_open(j, NULL, '{');
    json_text(j, "part", p->label);
    json_real(j, "count", p->count);
    json_real(j, "alone_ns", p->alone_ns);
    json_real(j, "gains_ns", p->gains_ns);
    json_close(j, '}');
}

static void write_parts(struct json *j, const struct bench_parts *parts)
{
    json_open(j, "explained", '{');
    json_real(j, "whole_ns", parts->whole_ns);
    json_real(j, "sum_ns", parts->sum_ns);
    json_open(j, "parts", '[');
    vec_each (const struct bench_part, p, &parts->list)
        write_part(j, p);
    json_close(j, ']');
    json_close(j, '}');
}

static void write_advice(struct json *j, const struct bench_advice *a)
{
    json_open(j, NULL, '{');
    json_flag(j, "rebuild", a->needs & BENCH_NEEDS_REBUILD);
    json_flag(j, "root", a->needs & BENCH_NEEDS_ROOT);
    json_flag(j, "kernel", a->needs & BENCH_OF_KERNEL);
    json_text(j, "keeps", a->keeps == BENCH_KEEPS_ORDER ? "order" : "sums");
    json_text(j, "mechanism", a->row->mechanism);
    json_text(j, "sink", a->row->sink);
    json_text(j, "clock", a->row->clock);
    json_real(j, "event_ns", a->event_ns);
    json_real(j, "cpu_percent", a->cpu * 100);
    json_rounded(j, "buffer_bytes", a->buffer_bytes);
    json_rounded(j, "held_ns", a->held_s * 1e9);
    json_close(j, '}');
}

void bench_view_json(struct sink *out, const struct bench_shown *shown)
{
    const struct bench_result *result = shown->result;
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "allium-bench");
    json_whole(&j, "version", VERSION);
    json_rounded(&j, "measured_ns", result->seconds * 1e9);
    json_whole(&j, "cpus", result->cpus);
    json_whole(&j, "threads", result->threads);
    json_whole(&j, "turns", result->turns);
    json_open(&j, "floors", '[');
    vec_each (const struct bench_row, r, &result->floors)
        write_floor(&j, result, r);
    json_close(&j, ']');
    json_open(&j, "rows", '[');
    vec_each (const struct bench_row, r, &result->rows)
        write_row(&j, result, r);
    json_close(&j, ']');
    json_open(&j, "switching", '[');
    vec_each (const struct bench_switching, s, &result->switchings)
        write_switching(&j, s);
    json_close(&j, ']');
    if (shown->parts)
        write_parts(&j, shown->parts);
    else
        json_null(&j, "explained");
    json_real(&j, "rate_per_s", shown->rate);
    json_open(&j, "advice", '[');
    vec_each (const struct bench_advice, a, shown->advice)
        write_advice(&j, a);
    json_close(&j, ']');
    json_close(&j, '}');
}
