/* SPDX-License-Identifier: BSD-2-Clause */
/* src/model/trace: event_spans, event_losses, allocator_time, live_bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "model/trace/allocator_time.h"
#include "model/trace/event_losses.h"
#include "model/trace/event_spans.h"
#include "model/trace/live_bytes.h"

static const struct event_field block[] = {{"ptr", EVENT_HEX, 8}, {"size", EVENT_BYTES, 8}};
static const struct event_field pid_only[] = {{"pid", EVENT_UNSIGNED, 4}};
static const struct event_field of_switch[] = {
    {"pid", EVENT_UNSIGNED, 4}, {"state", EVENT_ENUM, 4}, {"next_tid", EVENT_UNSIGNED, 4}};

enum {
    MALLOC_BEGIN,
    MALLOC,
    CALLOC_BEGIN,
    CALLOC,
    FREE,
    FREE_END,
    REALLOC_BEGIN,
    REALLOC_END,
    FAULT_BEGIN,
    FAULT_END,
    RECLAIM_BEGIN,
    RECLAIM_END,
    SWITCH,
    A_BEGIN,
    A_END,
    B_BEGIN,
    B_END,
    ALONE_BEGIN,
    CLASSES
};
static const struct event_class all[CLASSES] = {
    [MALLOC_BEGIN] = {"allium:malloc_begin", 7, 2, block},
    [MALLOC] = {"allium:malloc", 1, 2, block},
    [CALLOC_BEGIN] = {"allium:calloc_begin", 8, 2, block},
    [CALLOC] = {"allium:calloc", 2, 2, block},
    [FREE] = {"allium:free", 6, 2, block},
    [FREE_END] = {"allium:free_end", 10, 2, block},
    [REALLOC_BEGIN] = {"allium:realloc_begin", 4, 2, block},
    [REALLOC_END] = {"allium:realloc_end", 5, 2, block},
    [FAULT_BEGIN] = {"kernel:page_fault_begin", 32769, 1, pid_only},
    [FAULT_END] = {"kernel:page_fault_end", 32770, 1, pid_only},
    [RECLAIM_BEGIN] = {"kernel:reclaim_begin", 32790, 1, pid_only},
    [RECLAIM_END] = {"kernel:reclaim_end", 32791, 1, pid_only},
    [SWITCH] = {"kernel:sched_switch", 32771, 3, of_switch},
    [A_BEGIN] = {"shop:a_begin", 64, 0, NULL},
    [A_END] = {"shop:a_end", 65, 0, NULL},
    [B_BEGIN] = {"shop:b_begin", 66, 0, NULL},
    [B_END] = {"shop:b_end", 67, 0, NULL},
    [ALONE_BEGIN] = {"shop:alone_begin", 68, 0, NULL},
};

struct state {
    struct event_spans *spans;
    struct allocator_time *time;
    struct span_change change;
    uint64_t image;
};

static struct state begin(void)
{
    static const struct event_class *list[CLASSES];
    for (int i = 0; i < CLASSES; i++)
        list[i] = &all[i];
    return (struct state){event_spans_new(list, CLASSES), allocator_time_new(), .image = 77};
}

static void end(struct state *s)
{
    event_spans_free(s->spans);
    allocator_time_free(s->time);
}

/* The event of a thread of process 10. `a`, `b`: the fields' values behind pid, or instead of it. */
static struct span_change *at(struct state *s, uint64_t ns, uint32_t thread, int class, uint64_t a,
                              uint64_t b)
{
    unsigned char fields[16] = {0};
    const bool of_kernel = class >= FAULT_BEGIN && class <= SWITCH;
    const uint32_t words[] = {10, (uint32_t)a, (uint32_t)b};
    const uint64_t longs[] = {a, b};
    memcpy(fields, of_kernel ? (const void *)words : longs, of_kernel ? sizeof(words) : sizeof(longs));
    const struct trace_event e = {.class = &all[class],
                                  .domain = of_kernel ? "kernel" : "ust",
                                  .time_ns = ns,
                                  .image_id = of_kernel ? 0 : s->image,
                                  .pid = of_kernel ? 0 : 10,
                                  .thread = thread,
                                  .fields = fields};
    event_spans_take(s->spans, &e, &s->change);
    if (s->change.ended)
        allocator_time_add(s->time, s->change.ended);
    return &s->change;
}

static struct span_change *now(struct state *s, uint64_t ns, int class)
{
    return at(s, ns, 1, class, 0, 0);
}

static uint64_t took(const struct span *s)
{
    return s ? s->ended_ns - s->began_ns : UINT64_MAX;
}

static void faults_and_reclaim_lie_in_the_call(void **state)
{
    (void)state;
    struct state s = begin();
    assert_int_equal(now(&s, 100, MALLOC_BEGIN)->depth, 0);
    assert_null(s.change.within);
    assert_string_equal(now(&s, 110, FAULT_BEGIN)->within, "malloc");
    assert_int_equal(s.change.depth, 1);
    assert_string_equal(now(&s, 120, RECLAIM_BEGIN)->within, "malloc");
    assert_int_equal(s.change.depth, 2);
    at(&s, 130, 1, SWITCH, 1, 999);
    at(&s, 150, 999, SWITCH, 0, 1);
    assert_int_equal(took(s.change.off_cpu), 20);
    assert_int_equal(took(now(&s, 160, RECLAIM_END)->ended), 40);
    assert_int_equal(took(now(&s, 170, FAULT_END)->ended), 60);
    assert_string_equal(s.change.within, "malloc");
    now(&s, 180, FAULT_BEGIN);
    now(&s, 185, FAULT_END);
    at(&s, 190, 1, SWITCH, 0, 999);
    at(&s, 193, 999, SWITCH, 0, 1);
    assert_int_equal(took(at(&s, 200, 1, MALLOC, 0x1000, 16)->ended), 100);
    assert_int_equal(s.change.depth, 0);
    assert_null(s.change.within);
    now(&s, 300, FAULT_BEGIN); /* outside */
    assert_null(s.change.within);
    now(&s, 400, FAULT_END);
    const struct allocator_sums sums = allocator_time_sums(s.time);
    assert_int_equal(sums.calls, 1);
    assert_int_equal(sums.total_ns, 100);
    assert_int_equal(sums.part_ns[SPAN_PART_FAULTS], 60 + 5);
    assert_int_equal(sums.part_ns[SPAN_PART_RECLAIM], 40);
    assert_int_equal(sums.part_ns[SPAN_PART_OFF_CPU], 20 + 3);
    assert_int_equal(sums.part_ns[SPAN_PART_ANY], 60 + 5 + 3);
    const struct span_counts n = event_spans_counts(s.spans);
    assert_int_equal(n.unended + n.unbegun + n.faults_unended, 0);
    end(&s);
}

static void threads_have_stacks_of_their_own(void **state)
{
    (void)state;
    struct state s = begin();
    at(&s, 1, 1, MALLOC_BEGIN, 0, 0);
    at(&s, 2, 2, FREE, 1, 0);
    assert_string_equal(at(&s, 3, 2, FAULT_BEGIN, 0, 0)->within, "free");
    assert_string_equal(at(&s, 4, 1, FAULT_BEGIN, 0, 0)->within, "malloc");
    assert_null(at(&s, 5, 3, FAULT_BEGIN, 0, 0)->within);
    assert_int_equal(took(at(&s, 7, 2, FAULT_END, 0, 0)->ended), 4);
    assert_int_equal(took(at(&s, 8, 1, FAULT_END, 0, 0)->ended), 4);
    assert_int_equal(took(at(&s, 9, 2, FREE_END, 1, 0)->ended), 7);
    assert_int_equal(took(at(&s, 10, 1, MALLOC, 1, 0)->ended), 9);
    assert_int_equal(allocator_time_sums(s.time).total_ns, 16);
    end(&s);
}

static void a_call_in_a_call_counts_once(void **state)
{
    (void)state;
    struct state s = begin();
    now(&s, 0, CALLOC_BEGIN);
    now(&s, 10, MALLOC_BEGIN);
    assert_string_equal(now(&s, 11, FAULT_BEGIN)->within, "malloc");
    now(&s, 15, FAULT_END);
    assert_false(now(&s, 20, MALLOC)->ended->outermost);
    assert_true(now(&s, 30, CALLOC)->ended->outermost);
    const struct allocator_sums sums = allocator_time_sums(s.time);
    assert_int_equal(sums.calls, 1);
    assert_int_equal(sums.total_ns, 30);
    assert_int_equal(sums.part_ns[SPAN_PART_FAULTS], 4);
    end(&s);
}

/* Without group `begin` a free is no beginning: what comes behind it is not in it. */
static void a_free_without_its_end_is_no_span(void **state)
{
    (void)state;
    struct state s = begin();
    now(&s, 1, FREE);
    assert_null(now(&s, 2, FAULT_BEGIN)->within);
    assert_int_equal(s.change.depth, 0);
    now(&s, 3, FAULT_END);
    now(&s, 4, MALLOC);
    now(&s, 5, FREE);
    assert_false(event_spans_has_begin(s.spans));
    assert_int_equal(took(now(&s, 8, FREE_END)->ended), 3);
    assert_true(event_spans_has_begin(s.spans));
    now(&s, 9, FREE);
    assert_string_equal(now(&s, 10, FAULT_BEGIN)->within, "free");
    const struct span_counts n = event_spans_counts(s.spans);
    assert_int_equal(n.unended + n.unbegun, 0);
    end(&s);
}

static void missing_ends_and_beginnings_are_counted(void **state)
{
    (void)state;
    struct state s = begin();
    now(&s, 1, MALLOC_BEGIN);
    now(&s, 2, MALLOC);
    assert_null(now(&s, 3, MALLOC)->ended);
    assert_int_equal(event_spans_counts(s.spans).unbegun, 1);
    now(&s, 10, CALLOC_BEGIN);
    now(&s, 11, FAULT_BEGIN); /* it fails: the program goes on in a signal handler */
    now(&s, 12, MALLOC_BEGIN);
    assert_int_equal(event_spans_counts(s.spans).faults_unended, 1);
    assert_int_equal(took(now(&s, 20, CALLOC)->ended), 10); /* malloc's end was lost */
    assert_int_equal(event_spans_counts(s.spans).unended, 1);
    assert_int_equal(now(&s, 21, FAULT_BEGIN)->depth, 0);
    now(&s, 22, FAULT_BEGIN);
    assert_int_equal(event_spans_counts(s.spans).faults_unended, 2);
    assert_int_equal(took(now(&s, 25, FAULT_END)->ended), 3);
    now(&s, 30, RECLAIM_END);
    assert_int_equal(event_spans_counts(s.spans).unbegun, 2);
    assert_int_equal(allocator_time_sums(s.time).total_ns, 1 + 10);
    assert_int_equal(allocator_time_sums(s.time).part_ns[SPAN_PART_ANY], 0);
    end(&s);
}

static void spans_of_the_program_may_cross(void **state)
{
    (void)state;
    struct state s = begin();
    assert_true(now(&s, 1, ALONE_BEGIN)->is_instant);
    now(&s, 2, A_BEGIN);
    now(&s, 3, B_BEGIN);
    now(&s, 4, A_END);
    assert_true(s.change.ended->crosses);
    assert_int_equal(took(s.change.ended), 2);
    assert_string_equal(s.change.ended->role->name, "shop:a");
    now(&s, 5, B_END);
    assert_false(s.change.ended->crosses);
    assert_int_equal(took(s.change.ended), 2);
    now(&s, 6, B_BEGIN);
    now(&s, 7, B_BEGIN); /* recursion */
    assert_int_equal(took(now(&s, 9, B_END)->ended), 2);
    assert_int_equal(took(now(&s, 9, B_END)->ended), 3);
    assert_null(now(&s, 10, B_END)->ended);
    assert_int_equal(event_spans_counts(s.spans).unbegun, 1);
    end(&s);
}

static void what_never_ends_lasts_until_the_end(void **state)
{
    (void)state;
    struct state s = begin();
    now(&s, 1, A_BEGIN);
    s.image = 78; /* exec */
    now(&s, 5, MALLOC_BEGIN);
    assert_int_equal(s.change.n_unfinished, 1);
    assert_int_equal(took(s.change.unfinished), 4);
    assert_true(s.change.unfinished->unfinished);
    now(&s, 6, MALLOC);
    assert_int_equal(s.change.n_unfinished, 0);
    now(&s, 7, B_BEGIN);
    at(&s, 9, 1, SWITCH, 16, 999); /* dead */
    assert_int_equal(s.change.n_unfinished, 1);
    at(&s, 10, 2, FREE, 1, 0);
    at(&s, 12, 2, SWITCH, 1, 999);
    at(&s, 15, 4, A_BEGIN, 0, 0);
    event_spans_finish(s.spans, &s.change);
    assert_int_equal(s.change.n_unfinished, 3);
    uint64_t sum = 0;
    for (size_t i = 0; i < s.change.n_unfinished; i++)
        sum += took(&s.change.unfinished[i]);
    assert_int_equal(sum, 5 + 3 + 0);
    assert_int_equal(event_spans_counts(s.spans).unended, 0);
    end(&s);
}

static void a_beginning_that_no_event_ends_is_open_if_it_comes_once(void **state)
{
    (void)state;
    struct state s = begin();
    assert_true(now(&s, 1, ALONE_BEGIN)->is_instant);
    at(&s, 2, 2, ALONE_BEGIN, 0, 0);
    assert_int_equal(now(&s, 3, A_BEGIN)->depth, 1);
    assert_int_equal(at(&s, 4, 2, ALONE_BEGIN, 0, 0)->depth, 1);
    assert_int_equal(at(&s, 5, 2, ALONE_BEGIN, 0, 0)->depth, 0); /* it came again */
    event_spans_finish(s.spans, &s.change);
    assert_int_equal(s.change.n_unfinished, 2);
    assert_string_equal(s.change.unfinished[0].role->name, "shop:a");
    assert_string_equal(s.change.unfinished[1].role->name, "shop:alone");
    assert_int_equal(took(&s.change.unfinished[1]), 4);
    assert_int_equal(event_spans_counts(s.spans).unended, 0);
    end(&s);
}

static void a_chosen_span_stays_chosen(void **state)
{
    (void)state;
    struct state s = begin();
    event_spans_choose(s.spans); /* nothing began yet */
    now(&s, 1, A_BEGIN);
    event_spans_choose(s.spans);
    now(&s, 2, B_BEGIN);
    now(&s, 3, MALLOC_BEGIN);
    event_spans_choose(s.spans);
    now(&s, 4, MALLOC);
    assert_true(s.change.ended->chosen);
    assert_int_equal(s.change.ended->number, 2);
    event_spans_choose(s.spans); /* an end begins nothing */
    event_spans_finish(s.spans, &s.change);
    assert_int_equal(s.change.n_unfinished, 2);
    assert_int_equal(s.change.unfinished[0].number, 1); /* the innermost comes first */
    assert_false(s.change.unfinished[0].chosen);
    assert_int_equal(s.change.unfinished[1].number, 0);
    assert_true(s.change.unfinished[1].chosen);
    end(&s);
}

/* The kernel tells switches between threads of others and ours. */
static void threads_of_others_are_not_off_the_cpu(void **state)
{
    (void)state;
    struct state s = begin();
    at(&s, 1, 500, SWITCH, 1, 1); /* process 10 is not known yet */
    assert_null(s.change.off_cpu);
    now(&s, 2, FAULT_BEGIN);
    now(&s, 3, FAULT_END);
    at(&s, 4, 1, SWITCH, 1, 0);
    at(&s, 9, 0, SWITCH, 0, 1);
    assert_int_equal(took(s.change.off_cpu), 5);
    assert_int_equal(s.change.off_cpu->thread, 1);
    at(&s, 10, 0, SWITCH, 0, 1); /* its leaving was lost */
    assert_int_equal(event_spans_counts(s.spans).unbegun, 1);
    end(&s);
}

static void live(struct live_bytes *l, int class, uint64_t ptr, uint64_t size, bool changes, uint64_t want)
{
    uint64_t have = 0;
    const uint64_t fields[] = {ptr, size};
    const struct trace_event e = {.class = &all[class],
                                  .domain = "ust",
                                  .image_id = 7,
                                  .thread = 1,
                                  .fields = (const unsigned char *)fields};
    assert_int_equal(live_bytes_take(l, &e, &have), changes);
    if (changes)
        assert_int_equal(have, want);
}

static void live_bytes_of_a_program(void **state)
{
    (void)state;
    struct live_bytes *l = live_bytes_new();
    live(l, MALLOC, 1, 100, true, 100);
    live(l, CALLOC, 2, 50, true, 150);
    live(l, MALLOC, 0, 50, false, 0); /* it failed */
    live(l, REALLOC_BEGIN, 2, 0, true, 100);
    live(l, REALLOC_END, 0, 70, true, 150); /* it failed: the block stays */
    live(l, REALLOC_BEGIN, 2, 0, true, 100);
    live(l, REALLOC_END, 3, 70, true, 170);
    live(l, REALLOC_BEGIN, 3, 0, true, 100);
    live(l, REALLOC_END, 0, 0, false, 0); /* realloc(p, 0) */
    live(l, FREE, 9, 0, false, 0);        /* not known */
    live(l, MALLOC, 1, 10, true, 10);     /* its free was lost */
    live(l, FREE, 1, 0, true, 0);
    live_bytes_free(l);
}

static void losses_are_added_up_by_cpu_and_by_time(void **state)
{
    (void)state;
    struct event_losses l = {0};
    event_losses_add(&l, &(struct lost_stretch){"ust", 0, 100, 200, 7});
    event_losses_add(&l, &(struct lost_stretch){"ust", 1, 200, 300, 1});
    event_losses_add(&l, &(struct lost_stretch){"kernel", 0, 200, 300, 2});
    event_losses_add(&l, &(struct lost_stretch){"ust", 0, 200, 300, 3}); /* goes on */
    event_losses_add(&l, &(struct lost_stretch){"ust", 0, 400, 350, 4}); /* ends before it begins */
    assert_int_equal(l.by_cpu.len, 3);
    assert_int_equal(l.by_cpu.at[0].events, 14);
    assert_int_equal(l.stretches.len, 4);
    assert_int_equal(l.stretches.at[0].to_ns, 300);
    assert_int_equal(l.stretches.at[0].events, 10);
    assert_int_equal(l.stretches.at[3].to_ns, 400);
    event_losses_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_and_reclaim_lie_in_the_call),
        cmocka_unit_test(threads_have_stacks_of_their_own),
        cmocka_unit_test(a_call_in_a_call_counts_once),
        cmocka_unit_test(a_free_without_its_end_is_no_span),
        cmocka_unit_test(missing_ends_and_beginnings_are_counted),
        cmocka_unit_test(spans_of_the_program_may_cross),
        cmocka_unit_test(what_never_ends_lasts_until_the_end),
        cmocka_unit_test(a_beginning_that_no_event_ends_is_open_if_it_comes_once),
        cmocka_unit_test(a_chosen_span_stays_chosen),
        cmocka_unit_test(losses_are_added_up_by_cpu_and_by_time),
        cmocka_unit_test(threads_of_others_are_not_off_the_cpu),
        cmocka_unit_test(live_bytes_of_a_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
