/* SPDX-License-Identifier: BSD-2-Clause */
/* What a trace keeps, if ends of lives come before their beginnings (collect/trace/block_filter.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "collect/trace/agent_events.h"
#include "collect/trace/block_filter.h"

#define LARGE 5000u
#define SMALL 10u

struct written {
    struct trace_event e;
    uint64_t fields[4];
};

/* An event of a thread, which runs on the CPU of its own number. */
static const struct trace_event *event(struct written *w, const char *name, uint32_t thread, uint64_t time_ns,
                                       uint64_t address, uint64_t size)
{
    uint32_t n;
    const struct event_class *classes = agent_events(&n);
    w->fields[0] = address;
    w->fields[1] = size;
    w->e = (struct trace_event){.domain = "ust",
                                .time_ns = time_ns,
                                .image_id = 1,
                                .cpu = thread,
                                .thread = thread,
                                .fields = (const unsigned char *)w->fields};
    for (uint32_t i = 0; i < n && !w->e.class; i++)
        if (!strcmp(classes[i].name, name))
            w->e.class = &classes[i];
    return &w->e;
}

struct kept {
    struct event_filter *filter;
    struct event_blocks *blocks;
};

/* Of a trace with --where 'size>1000'. */
static void begin(struct kept *k)
{
    struct error e;
    assert_int_equal(event_filter_new(&k->filter, "size>1000", &e), 0);
    k->blocks = event_blocks_new();
}

static void end(struct kept *k)
{
    event_filter_free(k->filter);
    event_blocks_free(k->blocks);
}

/* Returns whether the event is kept; `birth`: what the caller would find for it. */
static bool keeps(struct kept *k, const struct trace_event *e, const struct trace_event *birth)
{
    return event_filter_keeps(k->filter, k->blocks, e, event_blocks_lacks(k->blocks, e) ? birth : NULL, 0);
}

/* The blocks 0x1000, of a malloc() of thread 0, and 0x2000. Thread 1 reallocates the first one before its time. */
static void early_realloc(struct kept *k)
{
    struct written birth, moves;
    event(&birth, "allium:malloc", 0, 5020, 0x1000, LARGE);
    assert_true(keeps(k, event(&moves, "allium:realloc_begin", 1, 5000, 0x1000, 0), &birth.e));
    assert_true(keeps(k, &birth.e, NULL));
}

static void an_early_realloc_keeps_its_end_and_its_block(void **state)
{
    struct written w, birth;
    struct kept k;
    (void)state;
    begin(&k);
    early_realloc(&k);
    /* The new block is freed by thread 2, also early: its life begins with the end of the realloc. */
    event(&birth, "allium:realloc_end", 1, 5100, 0x2000, SMALL);
    assert_true(keeps(&k, event(&w, "allium:free", 2, 5080, 0x2000, 0), &birth.e));
    assert_true(keeps(&k, &birth.e, NULL));
    assert_false(keeps(&k, event(&w, "allium:free", 2, 9000, 0x2000, 0), NULL));
    early_realloc(&k);
    assert_true(keeps(&k, event(&w, "allium:realloc_end", 1, 5100, 0x2000, SMALL), NULL));
    assert_true(keeps(&k, event(&w, "allium:free", 1, 5200, 0x2000, 0), NULL));
    assert_false(keeps(&k, event(&w, "allium:free", 1, 5200, 0x1000, 0), NULL));
    end(&k);
}

static void the_block_of_an_early_realloc_that_fails_lives_on(void **state)
{
    struct written w;
    struct kept k;
    (void)state;
    begin(&k);
    early_realloc(&k);
    assert_true(keeps(&k, event(&w, "allium:realloc_end", 1, 5100, 0, SMALL), NULL));
    assert_true(keeps(&k, event(&w, "allium:free", 1, 5200, 0x1000, 0), NULL));
    end(&k);
}

static void an_early_free_is_kept_with_its_block(void **state)
{
    struct written w, birth;
    struct kept k;
    (void)state;
    begin(&k);
    event(&birth, "allium:malloc", 0, 5020, 0x1000, LARGE);
    assert_true(keeps(&k, event(&w, "allium:free", 1, 5000, 0x1000, 0), &birth.e));
    assert_true(keeps(&k, &birth.e, NULL));
    assert_false(keeps(&k, event(&w, "allium:free", 1, 9000, 0x1000, 0), NULL));
    event(&birth, "allium:malloc", 0, 9120, 0x1000, SMALL);
    assert_false(keeps(&k, event(&w, "allium:free", 1, 9100, 0x1000, 0), &birth.e));
    assert_false(keeps(&k, &birth.e, NULL));
    end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_early_free_is_kept_with_its_block),
        cmocka_unit_test(an_early_realloc_keeps_its_end_and_its_block),
        cmocka_unit_test(the_block_of_an_early_realloc_that_fails_lives_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
