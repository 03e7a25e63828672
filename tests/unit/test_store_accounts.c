/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/store/accounts: what is read of a recording at any time is what was put last until then.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/account_tables.h"

enum { PROCESSES = 3, PLACES = 12, MOMENTS = 120 };
#define T0 1000000000000ull

/* What a process had at one moment; 0 calls: no such place. */
struct truth {
    uint64_t calls[PROCESSES][PLACES], bytes[PROCESSES][PLACES];
    bool inexact[PROCESSES][PLACES], seen[PROCESSES];
};

static unsigned seed = 3;

static unsigned draw(unsigned below)
{
    return (unsigned)rand_r(&seed) % below;
}

static uint32_t text(struct alloc_texts *texts, const char *format, unsigned number)
{
    char name[32];
    snprintf(name, sizeof(name), format, number);
    return alloc_texts_put(texts, name, strlen(name));
}

/* One process does something more; now and then a place is gone, as one is that gets another name. */
static void go_on(struct truth *t, unsigned process)
{
    t->seen[process] = true;
    for (unsigned n = draw(4); n; n--) {
        unsigned place = draw(PLACES);
        t->calls[process][place] += 1 + draw(5);
        t->bytes[process][place] += draw(1000);
        t->inexact[process][place] |= !draw(10);
    }
    if (!draw(5)) {
        unsigned place = draw(PLACES);
        t->calls[process][place] = t->bytes[process][place] = 0;
        t->inexact[process][place] = false;
    }
}

/* Two kinds are of two ledgers: of images of their own. */
static void put(struct accounts_keeper *k, const struct truth *t, unsigned process, uint64_t image_id,
                uint64_t time_ns)
{
    struct alloc_texts texts = {
        .bytes = BUF_INIT}; /* numbers of texts mean nothing from one reading to the next */
    struct accounts a = {.rows = {0}};
    struct error e = {""};
    text(&texts, "filler %u", draw(9));
    *vec_push(&a.processes) = (struct account_process){.image_id = image_id,
                                                       .began_ns = T0,
                                                       .taken_ns = time_ns,
                                                       .losses = {[ACCOUNT_LOST_FREES] = time_ns - T0},
                                                       .comm = "fifteen letters",
                                                       .pid = 100 + (int)process,
                                                       .alive = true};
    for (unsigned i = 0; i < PLACES; i++) {
        if (!t->calls[process][i])
            continue;
        struct account_row *r = vec_push(&a.rows);
        r->key.function = text(&texts, "f%u", i);
        r->key.file = text(&texts, i % 2 ? "a.c" : "dir %u/b.c", i);
        r->key.line = i;
        r->copies = 1;
        r->of[ACCOUNT_AFTER] = (struct account_sum){.places = 1, .inexact = t->inexact[process][i]};
        r->of[ACCOUNT_AFTER].of[ACCOUNT_ALLOCATED_CALLS] = t->calls[process][i];
        r->of[ACCOUNT_AFTER].of[ACCOUNT_RELEASED_BYTES] = t->bytes[process][i];
    }
    assert_int_equal(accounts_keeper_put(k, &a, &texts, &e), 0);
    accounts_release(&a);
    alloc_texts_release(&texts);
}

static void assert_as(const char *path, const struct truth *t, const uint64_t *at_ns)
{
    struct accounts a;
    struct alloc_texts texts = {.bytes = BUF_INIT};
    struct error e = {""};
    unsigned rows = 0, processes = 0;
    assert_int_equal(recording_load_accounts(&a, &texts, path, "tags", at_ns, &e), 0);
    for (unsigned process = 0; process < PROCESSES; process++) {
        processes += t->seen[process];
        for (unsigned place = 0; place < PLACES; place++)
            rows += t->calls[process][place] != 0;
    }
    assert_int_equal(a.processes.len, processes);
    assert_int_equal(a.rows.len, rows);
    vec_each (const struct account_row, r, &a.rows) {
        unsigned process = r->key.pid - 100,
                 place = (unsigned)atoi(alloc_texts_get(&texts, r->key.function) + 1);
        const struct account_sum *sum = &r->of[ACCOUNT_AFTER];
        assert_in_range(process, 0, PROCESSES - 1);
        assert_int_equal(sum->of[ACCOUNT_ALLOCATED_CALLS], t->calls[process][place]);
        assert_int_equal(sum->of[ACCOUNT_RELEASED_BYTES], t->bytes[process][place]);
        assert_int_equal(sum->inexact, t->inexact[process][place]);
        assert_int_equal(r->key.line, place);
        assert_string_equal(alloc_texts_get(&texts, r->key.comm), "fifteen letters");
    }
    accounts_release(&a);
    alloc_texts_release(&texts);
}

static void every_moment_is_what_was_put_last(void **state)
{
    (void)state;
    char path[] = "/tmp/allium-accounts-XXXXXX";
    struct recording *r;
    struct error e = {""};
    static struct truth then[MOMENTS];
    uint64_t at[MOMENTS];
    assert_true(close(mkstemp(path)) == 0);
    assert_int_equal(recording_create(&r, path, true, &e), 0);
    struct accounts_keeper *k = accounts_keeper_new(r, "tags"), *other = accounts_keeper_new(r, "sites");
    for (int i = 0; i < MOMENTS; i++) {
        if (i)
            then[i] = then[i - 1];
        unsigned process = i < 3 ? 0 : draw(PROCESSES);
        at[i] = T0 + 1000u * (unsigned)i;
        go_on(&then[i], process);
        put(k, &then[i], process, UINT64_MAX - process, at[i]);
        put(other, &then[draw((unsigned)i + 1)], process, 1 + process,
            at[i]); /* none of which is to be seen */
        if (!draw(10))
            assert_int_equal(recording_commit(r, &e), 0);
    }
    accounts_keeper_free(k);
    accounts_keeper_free(other);
    assert_int_equal(recording_close(r, &e), 0);
    for (int i = 0; i < MOMENTS; i++) {
        uint64_t later = at[i] + 999;
        assert_as(path, &then[i], i % 2 ? &at[i] : &later);
    }
    assert_as(path, &then[MOMENTS - 1], NULL);
    uint64_t before = T0 - 1;
    struct accounts none;
    struct alloc_texts texts = {.bytes = BUF_INIT};
    assert_int_equal(recording_load_accounts(&none, &texts, path, "tags", &before, &e), -ENODATA);
    assert_non_null(strstr(e.text, "at that time"));
    assert_int_equal(recording_load_accounts(&none, &texts, path, "else", NULL, &e), -ENODATA);
    alloc_texts_release(&texts);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"every moment is what was put last until then", every_moment_is_what_was_put_last, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
