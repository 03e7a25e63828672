/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/bench_explain.h"
#include "model/bench/bench_advice.h"
#include "model/bench/bench_parts.h"

static struct bench_row *add(struct bench_rows *rows, const char *mechanism, const char *sink,
                             const char *floor)
{
    struct bench_row *r = vec_push(rows);
    bench_row_init(r, mechanism, sink, floor, 2);
    r->events_per_call = 1;
    return r;
}

/* `turns` turns in which each batch takes so long. */
static void measure(struct bench_row *r, double bare_ns, double ns, unsigned turns)
{
    for (unsigned i = 0; i < turns; i++) {
        for (unsigned k = 0; k < 3; k++)
            bench_batches_add(&r->alone, bare_ns, ns, false, false);
        bench_batches_end_turn(&r->alone);
    }
}

static void a_figure_is_the_difference(void **state)
{
    struct bench_result result = {.threads = 2};
    (void)state;
    measure(add(&result.floors, "rdtsc", "none", NULL), 0, 8, 7);
    struct bench_row *r = add(&result.rows, "nop", "event", "rdtsc");
    measure(r, 1, 13, 7);
    for (unsigned i = 0; i < 100; i++)
        bench_shots_add(&r->hot, (const uint32_t[]){20}, (const uint32_t[]){i < 95 ? 30 : 500}, 1);
    bench_shots_add(&r->cold, (const uint32_t[]){40, 60, 50}, (const uint32_t[]){400, 300, 500}, 3);
    bench_shots_add(&r->isolated, (const uint32_t[]){50}, (const uint32_t[]){40}, 1);
    bench_batches_add(&r->together, 1, 21, false, false);
    bench_batches_end_turn(&r->together);
    r->hits = 10;
    r->bytes = 320;
    struct bench_figures f = bench_row_figures(&result, r);
    assert_true(f.least == 12 && f.median == 12 && f.interval.low == 12 && f.interval.high == 12);
    assert_true(f.p90 == 10 && f.p99 == 480);
    assert_true(f.cold == 350 && f.isolated == 0 && f.together == 20); /* faster than without: 0 */
    assert_true(f.ratio == 1.5 && f.event_bytes == 32);
    struct bench_row *none = add(&result.rows, "nop", "off", "nosuch");
    f = bench_row_figures(&result, none);
    assert_true(isnan(f.median) && isnan(f.least) && isnan(f.p90) && isnan(f.cold) && isnan(f.ratio));
    assert_true(isinf(f.interval.low) && isnan(f.event_bytes));
    bench_result_release(&result);
}

static void disturbed_batches_are_dropped_and_counted(void **state)
{
    struct bench_result result = {.threads = 2};
    struct bench_row *r = add(&result.rows, "nop", "event", NULL);
    (void)state;
    measure(r, 1, 3, 6);
    bench_batches_add(&r->alone, 1, 1e6, true, false);
    bench_batches_add(&r->alone, 1, 1e6, true, true);
    bench_batches_add(&r->alone, 0.1, 0.2, false, true);
    bench_batches_end_turn(&r->alone); /* nothing is left of this turn */
    const struct bench_figures f = bench_row_figures(&result, r);
    assert_true(f.median == 2 && f.least == 2 && f.interval.high == 2);
    assert_int_equal(r->alone.turns.len, 6);
    assert_int_equal(r->alone.switched, 2);
    assert_int_equal(r->alone.apart, 1);
    bench_result_release(&result);
}

static void missing_is_what_is_neither_seen_nor_lost(void **state)
{
    struct bench_row r = {.expected = 100, .hits = 90, .lost = 7};
    (void)state;
    assert_int_equal(bench_row_missing(&r), 0); /* the sink does not count */
    r.knows_hits = true;
    assert_int_equal(bench_row_missing(&r), 3);
    r.hits = 95;
    assert_int_equal(bench_row_missing(&r), 0);
}

static void parts_that_do_not_add_up_are_said(void **state)
{
    struct bench_result result = {.threads = 1};
    struct bench_parts parts = {.sum_ns = 0};
    (void)state;
    measure(add(&result.rows, "instrument-functions", "event", NULL), 0, 30, 6);
    measure(add(&result.rows, "part", "off", NULL), 0, 4, 6);
    measure(add(&result.rows, "none", "event", NULL), 0, 11, 6);
    result.rows.at[0].events_per_call = 2;
    struct bench_part *p = vec_push(&parts.list);
    *p = (struct bench_part){.label = "calls", .count = 3, .alone = 1, .without = 2};
    p = vec_push(&parts.list);
    *p = (struct bench_part){.label = "copy", .count = 2, .is_for_each_event = true, .alone = 1};
    bench_parts_compute(&parts, &result);
    assert_true(parts.whole_ns == 30 && parts.sum_ns == 12 + 16 && !parts.is_apart);
    assert_true(parts.list.at[0].alone_ns == 12 && parts.list.at[0].gains_ns == 19);
    assert_true(parts.list.at[1].alone_ns == 16 && isnan(parts.list.at[1].gains_ns));
    parts.list.at[0].count = 1;
    bench_parts_compute(&parts, &result);
    assert_true(parts.sum_ns == 20 && parts.is_apart);
    parts.list.at[0].less = 2; /* a part may be by how much one row is dearer than another */
    bench_parts_compute(&parts, &result);
    assert_true(parts.list.at[0].alone_ns == 4 - 11 && parts.sum_ns == 16 - 7);
    vec_release(&parts.list);
    bench_result_release(&result);
}

static void each_row_has_parts(void **state)
{
    (void)state;
    for (const struct bench_mechanism *m = bench_mechanism_list; m->name; m++)
        for (const struct bench_sink_doc *s = bench_sink_list; s->name; s++) {
            struct bench_options o = {.threads = 1};
            struct bench_parts parts = {.sum_ns = 0};
            if (!bench_makes_row(m, s))
                continue;
            bench_explain_plan(&o, &parts, m, s);
            print_message("# %s/%s: %zu parts\n", m->name, s->name, parts.list.len);
            assert_true(parts.list.len > 0 || !strcmp(m->name, "none"));
            vec_each (const struct bench_part, p, &parts.list)
                assert_true(p->alone < o.pairs.len && p->less < o.pairs.len && p->without < o.pairs.len);
            vec_release(&o.pairs);
            vec_release(&parts.list);
        }
}

static struct bench_row *add_kept(struct bench_result *result, const char *mechanism, enum bench_keeps keeps,
                                  uint32_t needs, double ns)
{
    struct bench_row *r =
        add(&result->rows, mechanism, keeps == BENCH_KEEPS_ORDER ? "event" : "count-thread", NULL);
    measure(r, 1, 1 + ns, 6);
    bench_shots_add(&r->isolated, (const uint32_t[]){20}, (const uint32_t[]){(uint32_t)(20 + 3 * ns)}, 1);
    r->keeps = keeps;
    r->needs = needs;
    r->knows_hits = true;
    r->expected = r->hits = 1000;
    r->bytes = 32000;
    return r;
}

static void advice_is_the_cheapest_that_loses_nothing(void **state)
{
    struct bench_result result = {.threads = 1};
    (void)state;
    add_kept(&result, "none", BENCH_KEEPS_ORDER, BENCH_NEEDS_REBUILD, 1); /* cannot be switched off */
    add_kept(&result, "nop", BENCH_KEEPS_ORDER, BENCH_NEEDS_REBUILD, 12);
    add_kept(&result, "branch", BENCH_KEEPS_ORDER, BENCH_NEEDS_REBUILD, 10);
    add_kept(&result, "jump", BENCH_KEEPS_ORDER, BENCH_NEEDS_REBUILD, 5)->lost = 1;
    add_kept(&result, "fast", BENCH_KEEPS_ORDER, BENCH_NEEDS_REBUILD, 5)->hits = 999;
    add_kept(&result, "plt", BENCH_KEEPS_SUMS, BENCH_NEEDS_NOTHING, 4)->events_per_call = 2;
    struct bench_advices a = bench_advice_find(&result, 1e6);
    assert_int_equal(a.len, 2);
    assert_string_equal(a.at[0].row->mechanism, "branch");
    assert_float_equal(a.at[0].event_ns, 10, 1e-9);
    assert_float_equal(a.at[0].cpu, 0.01, 1e-9);
    assert_true(a.at[0].buffer_bytes == 16 << 20); /* half a second of 32 MB/s */
    assert_float_equal(a.at[0].held_s, (16 << 20) / 32e6, 1e-9);
    assert_string_equal(a.at[1].row->mechanism, "plt");
    assert_float_equal(a.at[1].event_ns, 2, 1e-9);
    assert_true(isnan(a.at[1].buffer_bytes));
    vec_release(&a);
    a = bench_advice_find(&result, 1000); /* rare events cost what isolated calls do */
    assert_float_equal(a.at[0].event_ns, 30, 1e-9);
    assert_true(a.at[0].buffer_bytes == 4 << 20);
    vec_release(&a);
    /* What is cheap in the kernel is no advice for a program. */
    add_kept(&result, "uprobe-nop", BENCH_KEEPS_SUMS, BENCH_NEEDS_ROOT, 400);
    add_kept(&result, "tracepoint", BENCH_KEEPS_SUMS, BENCH_NEEDS_ROOT | BENCH_OF_KERNEL, 100);
    a = bench_advice_find(&result, 1e6);
    assert_int_equal(a.len, 4);
    assert_string_equal(a.at[2].row->mechanism, "uprobe-nop");
    assert_string_equal(a.at[3].row->mechanism, "tracepoint");
    vec_release(&a);
    bench_result_release(&result);
}

static void switching_is_a_median(void **state)
{
    static const uint32_t on[] = {30, 10, 20}, off[] = {7, 9, 8};
    struct bench_switching_figures f = bench_switching_median(on, off, 3);
    (void)state;
    assert_true(f.on_ns == 20 && f.off_ns == 8);
    f = bench_switching_median(on, off, 0);
    assert_true(isnan(f.on_ns) && isnan(f.off_ns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switching_is_a_median),
        cmocka_unit_test(a_figure_is_the_difference),
        cmocka_unit_test(disturbed_batches_are_dropped_and_counted),
        cmocka_unit_test(missing_is_what_is_neither_seen_nor_lost),
        cmocka_unit_test(parts_that_do_not_add_up_are_said),
        cmocka_unit_test(each_row_has_parts),
        cmocka_unit_test(advice_is_the_cheapest_that_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
