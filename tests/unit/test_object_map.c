/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect/objects and object_faults against the map that src/target/object_map.c writes, of this very process: what
 * lies at an address is what a look at each object says; and each fault is counted once, for the object in whose page
 * it was.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/vec.h"
#include "collect/accounts/object_faults.h"
#include "collect/accounts/object_lookup.h"
#include "target/object_map.h"

#define PAGE  4096ul
#define GIB   (1ul << 30)
#define LOOKS 20000
#define PAGES 300u

struct thing {
    uint64_t start, bytes;
    uint32_t account;
};
struct things VEC(struct thing);

static uint64_t random_state = 7;

static uint64_t below(uint64_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 20) % limit;
}

static uint64_t random_bytes(void)
{
    switch (below(8)) {
    case 0:
        return below(3);
    case 1:
        return 4090 + below(10);
    case 2:
        return below(100000);
    case 3:
        return below(40) ? below(20 << 20) : GIB + below(3 * GIB);
    default:
        return below(700);
    }
}

static uint64_t random_gap(void)
{
    return below(3) ? 16 * below(2) : below(2) ? below(3 * PAGE) : below(50) ? 0 : below(GIB);
}

/* What lies at the address, by a look at each. */
static struct object_lookup_found find_slowly(const struct things *all, uint64_t address)
{
    struct object_lookup_found found = {0};
    const struct thing *has = NULL, *behind = NULL, *before = NULL, *any = NULL;
    uint64_t page = address & ~(PAGE - 1);
    vec_each (const struct thing, t, all) {
        uint64_t end = t->start + t->bytes;
        if (t->start >= page + PAGE || (t->start < page && end <= page))
            continue;
        found.shared = found.shared || (any && any->account != t->account);
        any = t;
        if (t->start <= address && address < end)
            has = t;
        else if (t->start <= address)
            before = t;
        else if (!behind)
            behind = t;
    }
    const struct thing *best = has ? has : behind ? behind : before;
    if (best) {
        found.account = best->account;
        found.start = best->start;
        found.bytes = best->bytes;
    }
    return found;
}

static struct objects *open_own(void)
{
    struct objects *o = NULL;
    struct error e = {""};
    if (object_lookup_open(&o, getpid(), &(struct object_lookup_where){(uintptr_t)object_map_tables(), 0},
                           &e))
        fail_msg("%s", e.text);
    return o;
}

static void compare(struct objects *o, const struct things *all, uint64_t address)
{
    struct object_lookup_found have, want = find_slowly(all, address);
    assert_int_equal(object_lookup_at(o, address, &have), 0);
    if (have.account != want.account || have.start != want.start || have.bytes != want.bytes ||
        have.shared != want.shared)
        fail_msg("at %lx: account %u at %lx of %lu%s, not %u at %lx of %lu%s", address, have.account,
                 have.start, have.bytes, have.shared ? ", shared" : "", want.account, want.start, want.bytes,
                 want.shared ? ", shared" : "");
}

/* Nothing is mapped where these objects are: the map alone knows of them. */
static void what_lies_at_an_address_is_what_a_look_at_each_says(void **state)
{
    struct things all = {0};
    uint64_t at = 0x200000000000;
    (void)state;
    while (all.len < 1000) {
        struct thing t = {at, random_bytes(), 1 + (uint32_t)below(4)};
        if (t.bytes > 4094 && all.len)
            t.start = (t.start + PAGE - 1) & ~(PAGE - 1);
        assert_true(object_map_put(t.start, (struct object){t.account, t.bytes}));
        *vec_push(&all) = t;
        at = (t.start + t.bytes + 8 + random_gap() + 7) & ~7ul;
    }
    struct objects *o = open_own();
    for (unsigned i = 0; i < LOOKS; i++) {
        const struct thing *t = &all.at[below(all.len)];
        compare(o, &all, t->start + below(t->bytes + 2 * PAGE) - (below(4) ? 0 : below(PAGE)));
    }
    for (size_t i = 0; i < all.len; i += 2) { /* what was found before is no longer there */
        struct object was;
        assert_true(object_map_take(all.at[i].start, &was));
        all.at[i].account = 0;
    }
    size_t kept = 0;
    vec_each (const struct thing, t, &all)
        if (t->account)
            all.at[kept++] = *t;
    all.len = kept;
    for (unsigned i = 0; i < LOOKS; i++) {
        const struct thing *t = &all.at[below(all.len)];
        compare(o, &all, t->start + below(t->bytes + 2 * PAGE));
    }
    vec_each (const struct thing, t, &all)
        object_map_take(t->start, &(struct object){0});
    vec_release(&all);
    object_lookup_close(o);
}

/* ---- faults ---- */

static struct VEC(uintptr_t) entered;

static void enter(const char *at, uint32_t account, uint64_t bytes)
{
    assert_true(object_map_put((uintptr_t)at, (struct object){account, bytes}));
    *vec_push(&entered) = (uintptr_t)at;
}

static int take_all(void **state)
{
    (void)state;
    vec_each (uintptr_t, at, &entered)
        object_map_take(*at, &(struct object){0});
    vec_release(&entered);
    return 0;
}

static char *map_pages(size_t pages)
{
    char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    madvise(at, pages * PAGE, MADV_NOHUGEPAGE);
    return at;
}

static void touch(char *at, size_t pages)
{
    for (size_t i = 0; i < pages; i++)
        ((volatile char *)at)[i * PAGE] = 1;
}

static struct object_faults *watch(void)
{
    struct object_faults *f = NULL;
    struct error e = {""};
    int bad = object_faults_open(&f, getpid(),
                                 &(struct object_lookup_where){(uintptr_t)object_map_tables(), 0}, &e);
    if (bad == -EACCES || bad == -EPERM || bad == -ENOSYS)
        skip();
    if (bad)
        fail_msg("%s", e.text);
    return f;
}

static void expect(const struct object_faults *f, uint32_t account, uint64_t minor, uint64_t shared)
{
    struct object_faults_sum sum = object_faults_of(f, account);
    if (sum.minor != minor || sum.major || sum.shared != shared)
        fail_msg("account %u: %lu minor, %lu major, %lu shared, not %lu, 0, %lu", account, sum.minor,
                 sum.major, sum.shared, minor, shared);
    assert_int_equal(object_faults_rest(f).lost, 0);
}

static void each_page_is_counted_once_for_its_object(void **state)
{
    char *at = map_pages(4 * PAGES);
    (void)state;
    enter(at, 11, PAGES * PAGE);
    for (unsigned i = 0; i < PAGES; i++) { /* two in each page, of which the second is touched */
        char *page = at + (PAGES + i) * PAGE;
        enter(page, 12, 100);
        enter(page + 112, 13, 100);
    }
    for (unsigned i = 0; i < PAGES; i++) /* one, behind the allocator's own words */
        enter(at + (2 * PAGES + i) * PAGE + 64, 14, 100);
    struct object_faults *f = watch();
    touch(at, PAGES);
    touch(at, PAGES);
    touch(at + PAGES * PAGE + 120, PAGES);
    touch(at + 2 * PAGES * PAGE, PAGES);
    touch(at + 3 * PAGES * PAGE, PAGES);
    madvise(at, PAGES * PAGE, MADV_DONTNEED); /* what was given back is touched for the first time again */
    touch(at, 7);
    object_faults_finish(f);
    expect(f, 11, PAGES + 7, 0);
    expect(f, 12, 0, 0);
    expect(f, 13, PAGES, PAGES);
    expect(f, 14, PAGES, 0);
    assert_true(object_faults_rest(f).none + object_faults_rest(f).elsewhere >= PAGES);
    object_faults_close(f);
    munmap(at, 4 * PAGES * PAGE);
}

static void objects_that_are_entered_late_or_have_gone(void **state)
{
    char *at = map_pages(2 * PAGES);
    (void)state;
    enter(at + PAGES * PAGE, 21, PAGES * PAGE);
    struct object_faults *f = watch();
    touch(at, PAGES);
    touch(at + PAGES * PAGE, PAGES);
    object_map_take((uintptr_t)at + PAGES * PAGE, &(struct object){0});
    object_faults_step(f, 0);
    enter(at, 22, PAGES * PAGE);
    object_faults_finish(f);
    expect(f, 21, 0, 0);
    expect(f, 22, PAGES, 0);
    assert_true(object_faults_rest(f).none + object_faults_rest(f).elsewhere >= PAGES);
    object_faults_close(f);
    munmap(at, 2 * PAGES * PAGE);
}

/* Each thread makes the next and lives on, and then touches pages of its own when all may. */
#define THREADS 200u
static char *shares;
static pthread_barrier_t all_are_there, all_are_done;
static pthread_t threads[THREADS];
static unsigned made;

static void *thread(void *arg)
{
    unsigned number = ++made;
    nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    if (number < THREADS)
        pthread_create(&threads[number], NULL, thread, NULL);
    pthread_barrier_wait(&all_are_there);
    touch(shares + (number - 1) * 10 * PAGE, 10);
    pthread_barrier_wait(&all_are_done);
    return arg;
}

/* We begin to look at another moment each time: now and then a thread is found that has inherited events. */
static void look_while_they_are_made(unsigned round)
{
    made = 0;
    shares = map_pages(THREADS * 10);
    for (unsigned i = 0; i < THREADS; i++)
        enter(shares + i * 10 * PAGE, 100 + i, 10 * PAGE);
    pthread_barrier_init(&all_are_there, NULL, THREADS + 1);
    pthread_barrier_init(&all_are_done, NULL, THREADS + 1);
    pthread_create(&threads[0], NULL, thread, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 100000 * (round % 16)}, NULL);
    struct object_faults *f = watch();
    pthread_barrier_wait(&all_are_there);
    pthread_barrier_wait(&all_are_done);
    object_faults_finish(f);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < THREADS; i++)
        expect(f, 100 + i, 10, 0);
    object_faults_close(f);
    take_all(NULL);
    munmap(shares, THREADS * 10 * PAGE);
}

static void threads_that_are_made_meanwhile_are_counted_once(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 24; round++)
        look_while_they_are_made(round);
}

static uint64_t faults_so_far(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_minflt;
}

/* More than the rings hold: what is counted, and what was lost, are all; and no more than the kernel counts, with
 * those of our own. */
static void what_is_lost_is_counted(void **state)
{
    size_t pages = 600000;
    char *at = map_pages(pages);
    (void)state;
    enter(at, 31, pages * PAGE);
    uint64_t before = faults_so_far();
    struct object_faults *f = watch();
    for (size_t i = 0; i < pages; i += 2000) {
        touch(at + i * PAGE, 2000);
        madvise(at + i * PAGE, 2000 * PAGE, MADV_DONTNEED);
    }
    object_faults_finish(f);
    struct object_faults_sum sum = object_faults_of(f, 31);
    struct account_faults_rest rest = object_faults_rest(f);
    assert_true(rest.lost > 0 && sum.minor > 0 && sum.minor < pages);
    assert_in_range(sum.minor + rest.lost + rest.none + rest.elsewhere, pages, faults_so_far() - before);
    object_faults_close(f);
    munmap(at, pages * PAGE);
}

/* How many pages of the map that have entries of those addresses are there. */
static size_t pages_there(uintptr_t address, uint64_t bytes)
{
    unsigned char there[PAGES];
    uintptr_t first = object_map_tables()[address >> OBJECTS_UNIT_SHIFT] + address / 4;
    size_t pages = bytes / 4 / PAGE, n = 0;
    assert_true(pages <= PAGES && !(first & (PAGE - 1)));
    assert_int_equal(mincore((void *)first, pages * PAGE, there), 0);
    for (size_t i = 0; i < pages; i++)
        n += there[i] & 1;
    return n;
}

static void room_is_made_for_a_mib_above(void **state)
{
    const uint64_t mib = 1ul << 20, pages = mib / 4 / PAGE;
    uintptr_t at = 70 * GIB + 16 * mib;
    struct object o = {5, 24};
    (void)state;
    object_map_expect_more(at); /* a GiB without a table: nothing is done, and nothing is made */
    assert_int_equal(object_map_tables()[at >> OBJECTS_UNIT_SHIFT], 0);
    assert_true(object_map_put(at + 4 * mib - 16, o));
    assert_int_equal(pages_there(at, 3 * mib), 0);
    object_map_expect_more(at + mib + mib / 4);
    assert_int_equal(pages_there(at, mib + mib / 4), 0);
    assert_int_equal(pages_there(at + mib + mib / 4, mib), pages);
    assert_int_equal(pages_there(at + 2 * mib + mib / 4, mib), 0);
    assert_int_equal(pages_there(at + 3 * mib + mib / 2, mib / 2 - 4 * PAGE), 0);
    object_map_expect_more(at + 3 * mib +
                           mib / 2); /* to the end of the unit, which is the end of the table */
    assert_int_equal(pages_there(at + 3 * mib + mib / 2, mib / 2), pages / 2);
    assert_true(object_map_take(at + 4 * mib - 16, &o));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lies_at_an_address_is_what_a_look_at_each_says),
        cmocka_unit_test_teardown(each_page_is_counted_once_for_its_object, take_all),
        cmocka_unit_test_teardown(objects_that_are_entered_late_or_have_gone, take_all),
        cmocka_unit_test(threads_that_are_made_meanwhile_are_counted_once),
        cmocka_unit_test_teardown(what_is_lost_is_counted, take_all),
        cmocka_unit_test(room_is_made_for_a_mib_above),
    };
    return object_map_tables() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
