/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect/ledger_copy: the time of a copy is one at which it was true, however long copying takes; what cannot be
 * read is called what it is.
 */
#include "test_kernel.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/ledger_profile.h"

#define TABLE_AT  LEDGER_HEADER_BYTES
#define COUNTS_AT (TABLE_AT + 4096u)
#define SLOW_NS   50000000

static uint64_t now_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* When the first table was about to be read, and all had been. */
static struct {
    uint64_t realtime_ns, monotonic_ns;
} began, done;

/* What is in the place of a count when it is read by itself. */
static const struct ledger_count *counts_done;

/* The reader's pread(): that of tables takes a while. */
ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    struct timespec slow = {.tv_nsec = SLOW_NS};
    if (offset >= (off_t)TABLE_AT && !began.realtime_ns) {
        began.realtime_ns = now_ns(CLOCK_REALTIME);
        began.monotonic_ns = now_ns(CLOCK_MONOTONIC);
        nanosleep(&slow, NULL);
    }
    if (counts_done && bytes == sizeof(*counts_done)) /* the writer goes on */
        assert_int_equal(pwrite(fd, counts_done, bytes, offset), bytes);
    ssize_t n = syscall(SYS_pread64, fd, to, bytes, offset);
    done.realtime_ns = now_ns(CLOCK_REALTIME);
    return n;
}

/* A ledger with one sample and a block of accounts, of an image that began a minute ago. */
static int ledger_with(const struct ledger_sample *s)
{
    const uint64_t minute = 60000000000u, mono = now_ns(CLOCK_MONOTONIC);
    struct ledger_header h = {
        .magic = LEDGER_MAGIC,
        .version = LEDGER_VERSION,
        .header_bytes = LEDGER_HEADER_BYTES,
        .clock = LEDGER_CLOCK_NS,
        .began_ticks = mono - minute,
        .began_monotonic_ns = mono - minute,
        .began_realtime_ns = now_ns(CLOCK_REALTIME) - minute,
    };
    for (int t = 0; t < LEDGER_TABLES; t++) {
        h.regions[t].record_bytes = ledger_record_bytes((enum ledger_table)t);
        h.regions[t].offset = TABLE_AT;
    }
    h.regions[LEDGER_SAMPLES].used = 1;
    h.regions[LEDGER_SAMPLES].ready_bytes = sizeof(*s);
    h.regions[LEDGER_ACCOUNTS].offset = COUNTS_AT;
    h.regions[LEDGER_ACCOUNTS].used = 1;
    h.regions[LEDGER_ACCOUNTS].ready_bytes = sizeof(struct ledger_accounts);
    int fd = memfd_create("ledger", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
    assert_int_equal(pwrite(fd, s, sizeof(*s), TABLE_AT), sizeof(*s));
    assert_int_equal(ftruncate(fd, COUNTS_AT + sizeof(struct ledger_accounts)), 0);
    return fd;
}

static void time_is_before_the_tables(void **state)
{
    (void)state;
    struct error e;
    struct ledger_copy c;
    const struct ledger_sample none = {.address = 0};
    int fd = ledger_with(&none);
    uint64_t before = now_ns(CLOCK_REALTIME), before_mono = now_ns(CLOCK_MONOTONIC);
    assert_int_equal(ledger_copy_read(fd, &c, &e), 0);
    assert_true(done.realtime_ns >= began.realtime_ns + SLOW_NS);
    assert_in_range(c.taken_realtime_ns, before, began.realtime_ns);
    assert_in_range(c.taken_ticks, before_mono, began.monotonic_ns);
    assert_int_equal(c.count[LEDGER_SAMPLES], 1);
    struct profile *p = ledger_profile(&c);
    assert_int_equal(p->taken_ns, c.taken_realtime_ns);
    profile_free(p);
    ledger_copy_release(&c);
    close(fd);
}

/* Calls and bytes, with so many calls until they are handed on, as the writer has them. */
static struct ledger_count count(uint64_t calls, uint64_t bytes, int until, bool phase)
{
    return (struct ledger_count){.now = bytes + ((uint64_t)until << LEDGER_CALLS_SHIFT) +
                                        (phase ? LEDGER_NOW_PHASE : 0),
                                 .more = calls + (uint64_t)until + (phase ? LEDGER_MORE_PHASE : 0)};
}

/* After the 4097th call another 513 may come; `now` was read before that, and `more` after it. */
static void torn_counts_are_read_again(void **state)
{
    (void)state;
    struct error e;
    struct ledger_copy c;
    const struct ledger_sample none = {.address = 0};
    const struct ledger_count before = count(4097, 81940, -1, false), after = count(4098, 81960, 512, true);
    const struct ledger_count torn = {before.now, after.more};
    const uint64_t at = offsetof(struct ledger_accounts, words[3][7].released);
    int fd = ledger_with(&none);
    assert_int_equal(ledger_count_calls(before), 4097);
    assert_int_equal(ledger_count_calls(after), 4098);
    assert_int_equal(ledger_count_calls(torn), 4611);
    assert_true(!ledger_count_is_torn(before) && !ledger_count_is_torn(after));
    assert_int_equal(pwrite(fd, &torn, sizeof(torn), (off_t)(COUNTS_AT + at)), sizeof(torn));
    counts_done = &after;
    assert_int_equal(ledger_copy_read(fd, &c, &e), 0);
    counts_done = NULL;
    const struct ledger_accounts *a = ledger_copy_at(&c, LEDGER_ACCOUNTS, struct ledger_accounts, 0);
    assert_int_equal(ledger_count_calls(a->words[3][7].released), 4098);
    assert_int_equal(ledger_count_bytes(a->words[3][7].released), 81960);
    assert_int_equal(ledger_count_calls(a->words[3][7].allocated), 0);
    ledger_copy_release(&c);
    close(fd);
}

/* What reading it comes to, in words. */
static const char *refusal(const struct ledger_header *h)
{
    static struct error e;
    struct ledger_copy c;
    const struct ledger_sample none = {.address = 0};
    int fd = ledger_with(&none);
    assert_int_equal(pwrite(fd, h, sizeof(*h), 0), sizeof(*h));
    assert_true(ledger_copy_read(fd, &c, &e) == -EPROTO);
    close(fd);
    return e.text;
}

/* Nothing in it is damaged. */
static void another_version_is_called_that(void **state)
{
    (void)state;
    struct ledger_header h, good;
    const struct ledger_sample none = {.address = 0};
    int fd = ledger_with(&none);
    assert_int_equal(pread(fd, &good, sizeof(good), 0), sizeof(good));
    close(fd);
    h = good;
    h.version = LEDGER_VERSION - 1;
    assert_non_null(strstr(refusal(&h), "of version"));
    assert_non_null(strstr(refusal(&h), "use the allium that started the program"));
    for (int t = 0; t < LEDGER_TABLES; t++) {
        h = good;
        h.regions[t].record_bytes += 8;
        assert_non_null(strstr(refusal(&h), "of another build of allium"));
        h = good;
        h.regions[t].offset = 1ull << 40;
        assert_non_null(strstr(refusal(&h), "is damaged"));
    }
}

/* If this fails, the layout has changed: raise LEDGER_VERSION, then write down here what it is now. */
static void a_version_is_a_layout(void **state)
{
    (void)state;
    static const uint32_t records[] = {16, 32, 1, 64, 8, 4, 16, 192, 48, 64, 65536, 128, 24, 2336, 65536, 24};
    assert_int_equal(LEDGER_VERSION, 8);
    assert_int_equal(LEDGER_TABLES, sizeof(records) / sizeof(*records));
    for (int t = 0; t < LEDGER_TABLES; t++)
        assert_int_equal(ledger_record_bytes((enum ledger_table)t), records[t]);
    assert_int_equal(sizeof(struct ledger_header), 4096);
    assert_int_equal(offsetof(struct ledger_header, regions), 192);
    assert_int_equal(offsetof(struct ledger_header, losses), 864);
    assert_int_equal(LEDGER_LOSSES, 15);
    assert_int_equal(offsetof(struct ledger_header, seccomp_filters), 984);
    assert_int_equal(offsetof(struct ledger_header, shards), 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("the time of a copy is before all that is copied", time_is_before_the_tables),
        TEST("a count that was read in two parts is read again", torn_counts_are_read_again),
        TEST("a ledger of another version is called that, and not damaged", another_version_is_called_that),
        TEST("a version is a layout", a_version_is_a_layout),
    };
    return cmocka_run_group_tests_name("ledger_copy", tests, NULL, NULL);
}
