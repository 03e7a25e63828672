/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile of single events: what is live in its cells are its samples, whatever events were lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/vec.h"
#include "model/profile/object_accounts.h"

struct heard {
    uint64_t begun, ended;
};

static void hear(void *arg, const struct object_life *life)
{
    struct heard *h = arg;
    h->begun += !life->is_end;
    h->ended += life->is_end;
}

static struct object_event event(uint32_t thread, uint64_t time_ns, uint64_t address, uint64_t size_bytes)
{
    return (struct object_event){
        .thread = thread, .time_ns = time_ns, .address = address, .size_bytes = size_bytes};
}

static struct profile *two_threads(void)
{
    struct profile *p = profile_new();
    *vec_push(&p->images) = (struct profile_image){.id = 1};
    *vec_push(&p->threads) = (struct profile_thread){.tid = 1};
    *vec_push(&p->threads) = (struct profile_thread){.tid = 2};
    *vec_push(&p->stacks) = (struct profile_stack){.depth = 0};
    return p;
}

static void check_live(const struct profile *p, const struct heard *h, uint64_t objects, uint64_t unseen)
{
    double live = 0;
    vec_each (const struct profile_cell, c, &p->cells)
        live += profile_live(c).count;
    assert_int_equal(live, objects);
    assert_int_equal(p->samples.len, objects);
    assert_int_equal(h->begun - h->ended, objects);
    assert_int_equal(p->images.at[0].losses[PROFILE_LOST_FREES_UNSEEN], unseen);
}

/* The end of a realloc() was lost. `taken`: another object has come to the address of the old one meanwhile. */
static void lose_end(bool taken, bool fails, uint64_t objects)
{
    struct profile *p = two_threads();
    struct heard h = {.begun = 0};
    const struct object_listener listener = {hear, &h};
    struct object_accounts *a = object_accounts_new(p);
    object_accounts_listen(a, &listener);
    struct object_event e = event(0, 1, 0x1000, 50);
    object_accounts_allocated(a, &e);
    e = event(0, 2, 0x1000, 0);
    assert_true(object_accounts_realloc_begins(a, &e));
    e = event(1, 3, 0x1000, 60);
    if (taken)
        object_accounts_allocated(a, &e);
    e = event(0, 4, 0, 99);
    if (fails)
        object_accounts_realloc_ended(a, &e);
    object_accounts_finish(a);
    check_live(p, &h, objects, taken);
    object_accounts_free(a);
    profile_free(p);
}

static void a_realloc_without_an_end_keeps_its_object(void **state)
{
    (void)state;
    lose_end(false, false, 1);
    lose_end(false, true, 1);
}

static void unless_another_object_has_its_address(void **state)
{
    (void)state;
    lose_end(true, false, 1);
    lose_end(true, true, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_realloc_without_an_end_keeps_its_object),
        cmocka_unit_test(unless_another_object_has_its_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
