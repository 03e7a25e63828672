/* SPDX-License-Identifier: BSD-2-Clause */
/* Events that are held until they are judged: what happens to times in the future, and what a held event costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "collect/trace/event_window.h"
#include "wire/event_schema.h"

#define RINGS 2u
#define BLOCK UINT64_C(0x5000)
#define DAY   UINT64_C(86400000000000)

struct window {
    struct event_filter *filter;
    struct user_classes *user;
    struct event_window *w;
};

static struct window begin(const char *query)
{
    struct window w = {.user = user_classes_new()};
    struct error e;
    assert_int_equal(event_filter_new(&w.filter, query, &e), 0);
    w.w = event_window_new(&(struct event_window_options){
        .filter = w.filter, .user = w.user, .pid = 1, .image_id = 1, .rings = RINGS});
    return w;
}

static void end(struct window *w)
{
    event_window_free(w->w);
    event_filter_free(w->filter);
    user_classes_free(w->user);
}

static uint64_t what(enum event_id id, uint32_t words)
{
    return (uint64_t)1 << 32 | words << 16 | id;
}

static void put(struct window *w, uint32_t ring, const uint64_t *words, uint32_t n_words, uint32_t n_events,
                uint64_t read_ns)
{
    const struct ring_piece p = {.words = words, .n_words = n_words, .n_events = n_events, .number = 1};
    assert_int_equal(event_window_put(w->w, ring, &p, NULL, read_ns), 0);
}

static void put_malloc(struct window *w, uint32_t ring, uint64_t time_ns, uint64_t size, uint64_t read_ns)
{
    put(w, ring, (uint64_t[]){time_ns, what(EVENT_malloc, 5), BLOCK, size, 1}, 5, 1, read_ns);
}

static void put_free(struct window *w, uint32_t ring, uint64_t time_ns, uint64_t read_ns)
{
    put(w, ring, (uint64_t[]){time_ns, what(EVENT_free, 4), BLOCK, 1}, 4, 1, read_ns);
}

/* Judges what came before `until_ns`, and returns the number of events that are kept. */
static uint32_t judge(struct window *w, uint64_t until_ns)
{
    uint32_t events = 0;
    event_window_judge(w->w, until_ns, 0);
    for (uint32_t ring = 0; ring < RINGS; ring++)
        for (const struct ring_piece *p; (p = event_window_take(w->w, ring));)
            events += p->n_events;
    return events;
}

static void one_forged_time(void **state)
{
    struct window w = begin("size>=100");
    uint32_t kept = 0;
    (void)state;
    put_malloc(&w, 0, UINT64_MAX - 1, 100, 1000);
    for (uint64_t round = 1; round <= 1000; round++) {
        kept += judge(&w, 1000 * round);
        assert_true(round < 2 || event_window_bytes(w.w) <= 40);
        put_malloc(&w, 0, 1000 * round + 500, 100, 1000 * round + 600);
    }
    kept += judge(&w, UINT64_MAX);
    assert_int_equal(kept, 1001);
    assert_int_equal(event_window_bytes(w.w), 0);
    assert_int_equal(event_window_ahead(w.w), 1);
    end(&w);
}

/* The block's end is read in a round before its beginning, from another ring. */
static void a_clock_of_its_own(void **state)
{
    struct window w = begin("size>=100");
    uint32_t kept = 0;
    (void)state;
    for (uint64_t round = 1; round <= 1000; round++) {
        const uint64_t now = 1000 * round;
        put_free(&w, 1, DAY + now + 500, now + 510);
        kept += judge(&w, now);
        put_malloc(&w, 0, DAY + now + 490, 100, now + 1010);
        assert_true(event_window_bytes(w.w) <= 3 * 40);
    }
    kept += judge(&w, UINT64_MAX);
    assert_int_equal(kept, 2000);
    assert_int_equal(event_window_dropped(w.w), 0);
    assert_int_equal(event_window_ahead(w.w), 2000);
    end(&w);
}

static void the_usual_clock(void **state)
{
    struct window w = begin("size>=100");
    (void)state;
    put_free(&w, 1, 1500, 1510);
    assert_int_equal(judge(&w, 1000), 0);
    put_malloc(&w, 0, 1490, 100, 2010);
    put_malloc(&w, 0, 2005, 99, 2010); /* after the round began: held */
    assert_int_equal(judge(&w, 2000), 2);
    assert_int_equal(event_window_bytes(w.w), 40);
    assert_int_equal(event_window_ahead(w.w), 0);
    assert_int_equal(judge(&w, UINT64_MAX), 0);
    assert_int_equal(event_window_dropped(w.w), 1);
    end(&w);
}

/* Judges by the CPUs' counters: returns what is kept, in the order of the rings. */
static uint32_t by_counters(uint64_t freed_ns, uint64_t allocated_ns, uint64_t size, uint32_t ring,
                            bool again)
{
    struct window w = begin("size>=100");
    event_window_free(w.w);
    w.w = event_window_new(&(struct event_window_options){
        .filter = w.filter, .user = w.user, .pid = 1, .image_id = 1, .rings = RINGS, .has_ticks = true});
    put_free(&w, 1, freed_ns, 20000);
    assert_int_equal(judge(&w, freed_ns + 10), 0); /* held: its allocation may come */
    put_malloc(&w, ring, allocated_ns, size, 20000);
    if (again) /* the block has been freed already: no life is left for this one */
        put_free(&w, 0, allocated_ns + 5000, 20000);
    const uint32_t kept = judge(&w, 20000);
    assert_int_equal(judge(&w, UINT64_MAX), 0);
    assert_int_equal(event_window_bytes(w.w), 0);
    assert_int_equal(kept + event_window_dropped(w.w), 2 + again);
    end(&w);
    return kept;
}

static void a_free_before_its_block(void **state)
{
    (void)state;
    assert_int_equal(by_counters(5000, 5020, 100, 0, false), 2);
    assert_int_equal(by_counters(5000, 5020, 100, 0, true), 2);
    assert_int_equal(by_counters(5000, 5020, 99, 0, false), 0);  /* the query excludes it */
    assert_int_equal(by_counters(5000, 6000, 100, 0, false), 1); /* too late: another life */
    assert_int_equal(by_counters(5000, 5020, 100, 1, false), 1); /* a CPU's own events are in order */
    assert_int_equal(by_counters(5000, 6000, 100, 0, true), 2);
}

/* Returns how many events have no sure place: two lives of one address, without times, the second one in this ring. */
static uint64_t ambiguous(uint32_t ring)
{
    struct window w = {.user = user_classes_new()};
    w.w = event_window_new(&(struct event_window_options){
        .user = w.user, .pid = 1, .image_id = 1, .rings = RINGS, .orders = true});
    put_malloc(&w, 0, 0, 100, 0);
    put_free(&w, 0, 0, 0);
    put_malloc(&w, ring, 0, 200, 0);
    put_free(&w, ring, 0, 0);
    event_window_judge(w.w, UINT64_MAX, 0);
    const uint64_t n = event_window_ambiguous(w.w);
    end(&w);
    return n;
}

static void lives_in_no_order(void **state)
{
    (void)state;
    assert_int_equal(ambiguous(0), 0);
    assert_int_equal(ambiguous(1), 2); /* either life may be the first one */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"events are judged in the order of time, when all rings were read", the_usual_clock, NULL, NULL,
         NULL},
        {"one event with a time in the future holds none back", one_forged_time, NULL, NULL, NULL},
        {"by a clock that is ahead, events are judged a round later, in their order", a_clock_of_its_own,
         NULL, NULL, NULL},
        {"without times, lives of an address in two rings have no sure order", lives_in_no_order, NULL, NULL,
         NULL},
        {"by the CPUs' counters, a free may come before its block's allocation", a_free_before_its_block,
         NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
