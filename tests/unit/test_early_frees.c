/* SPDX-License-Identifier: BSD-2-Clause */
/* Frees whose time is before that of their block's allocation (model/trace/early_frees.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "model/trace/early_frees.h"
#include "model/trace/live_bytes.h"

static struct early_free free_of(uint64_t address, uint64_t time_ns, uint32_t cpu)
{
    return (struct early_free){
        .image = 1, .address = address, .time_ns = time_ns, .cpu = cpu, .thread = 7, .location = 3};
}

static void only_of_its_block(void **state)
{
    struct early_frees e = {.next = 0};
    struct early_free f = free_of(0x1000, 5000, 1), out;
    (void)state;
    assert_false(early_frees_take(&e, 1, 0, 0, 5, &out)); /* none was noted, and the trace has just begun */
    early_frees_note(&e, &f);
    assert_false(early_frees_take(&e, 1, 0x1000, 1, 5010, &out)); /* its own CPU would have been in order */
    assert_false(early_frees_take(&e, 2, 0x1000, 0, 5010, &out));
    assert_false(early_frees_take(&e, 1, 0x1010, 0, 5010, &out));
    assert_false(early_frees_take(&e, 1, 0x1000, 0, 5000 + EARLY_FREES_NS, &out));
    assert_true(early_frees_take(&e, 1, 0x1000, 0, 5000 + EARLY_FREES_NS - 1, &out));
    assert_int_equal(out.thread, 7);
    assert_int_equal(out.location, 3);
    assert_false(early_frees_take(&e, 1, 0x1000, 0, 5010, &out)); /* once */
}

static void the_latest(void **state)
{
    struct early_frees e = {.next = 0};
    struct early_free out;
    (void)state;
    for (uint64_t k = 0; k <= EARLY_FREES; k++) {
        const struct early_free f = free_of(0x1000 + 16 * k, 5000 + k, 1);
        early_frees_note(&e, &f);
    }
    assert_false(early_frees_take(&e, 1, 0x1000, 0, 5100, &out));
    for (uint64_t k = 1; k <= EARLY_FREES; k++)
        assert_true(early_frees_take(&e, 1, 0x1000 + 16 * k, 0, 5100, &out));
}

static void failed_realloc(void **state)
{
    struct early_frees e = {.next = 0};
    struct early_free f = free_of(0x1000, 5000, 1), out;
    (void)state;
    f.reallocates = true;
    early_frees_note(&e, &f);
    early_frees_take_back(&e, 1, 8);
    early_frees_take_back(&e, 1, 7);
    assert_false(early_frees_take(&e, 1, 0x1000, 0, 5010, &out));
}

static const struct event_field of_block[] = {{"ptr", EVENT_HEX, 8}, {"size", EVENT_BYTES, 8}};
static const struct event_class allocates = {"allium:malloc", 0, 2, of_block},
                                frees = {"allium:free", 1, 1, of_block},
                                begins = {"allium:realloc_begin", 2, 1, of_block},
                                ends = {"allium:realloc_end", 3, 2, of_block};

/* Takes an event, and returns the live bytes after it. */
static uint64_t take(struct live_bytes *l, const struct event_class *class, uint32_t cpu, uint64_t time_ns,
                     uint64_t address)
{
    const uint64_t fields[] = {address, 100};
    static uint64_t bytes;
    live_bytes_take(l,
                    &(struct trace_event){.class = class,
                                          .domain = "ust",
                                          .time_ns = time_ns,
                                          .image_id = 1,
                                          .cpu = cpu,
                                          .fields = (const unsigned char *)fields},
                    &bytes);
    return bytes;
}

/* The counter of `allium export --chrome`. */
static void live_counter(void **state)
{
    struct live_bytes *l = live_bytes_new();
    (void)state;
    assert_int_equal(take(l, &allocates, 0, 1000, 0x1000), 100);
    assert_int_equal(take(l, &frees, 1, 5000, 0x2000), 100);     /* its block comes */
    assert_int_equal(take(l, &allocates, 0, 5020, 0x2000), 100); /* and was freed */
    assert_int_equal(take(l, &allocates, 0, 7000, 0x2000), 200); /* a life of its own */
    assert_int_equal(take(l, &frees, 1, 7500, 0x2000), 100);
    assert_int_equal(take(l, &allocates, 0, 7600, 0x2000), 200); /* the free was of the life before */
    assert_int_equal(take(l, &begins, 1, 9000, 0x3000), 200);
    assert_int_equal(take(l, &ends, 1, 9010, 0), 200); /* it failed: its block, which comes, was not freed */
    assert_int_equal(take(l, &allocates, 0, 9020, 0x3000), 300);
    assert_int_equal(take(l, &begins, 1, 9900, 0x4000), 300);
    assert_int_equal(take(l, &ends, 1, 9910, 0x5000), 400);
    assert_int_equal(take(l, &allocates, 0, 9920, 0x4000), 400); /* this one was */
    live_bytes_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_of_its_block),
        cmocka_unit_test(the_latest),
        cmocka_unit_test(failed_realloc),
        cmocka_unit_test(live_counter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
