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
    json_real(j, "low_ns", f.interval.low);
    json_real(j, "high_ns", f.interval.high);
    json_text(j, "unavailable", r->unavailable);
    json_close(j, '}');
}

static void write_counts(struct json *j, const struct bench_row *r, bool is_known)
{
    void (*const write)(struct json *, const char *, uint64_t) = json_whole;
    write(j, "expected", r->expected);
    if (is_known) {
        write(j, "hits", r->hits);
        write(j, "lost", r->lost);
        write(j, "missing", bench_row_missing(r));
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
    json_text(j, "unavailable", r->unavailable);
    json_whole(j, "events_per_call", r->events_per_call);
    json_real(j, "least_ns", f.least);
    json_real(j, "median_ns", f.median);
    json_real(j, "low_ns", f.interval.low);
    json_real(j, "high_ns", f.interval.high);
    json_real(j, "p90_ns", f.p90);
    json_real(j, "p99_ns", f.p99);
    json_real(j, "isolated_ns", f.isolated);
    json_real(j, "cold_ns", f.cold);
    json_real(j, "together_ns", f.together);
    json_text(j, "floor", r->floor);
    json_real(j, "floor_ratio", f.ratio);
    json_real(j, "event_bytes", f.event_bytes);
    write_counts(j, r, r->knows_hits);
    json_close(j, '}');
}

void bench_view_json(struct sink *out, const struct bench_result *result)
{
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "allium-bench");
    json_whole(&j, "version", VERSION);
    json_real(&j, "measured_s", result->seconds);
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
    json_close(&j, '}');
}
