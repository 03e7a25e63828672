/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect/ledger_copy: the time of a copy is one at which it was true, however long copying takes.
 */
#include "test_kernel.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collect/ledger_copy.h"
#include "collect/ledger_profile.h"

#define TABLE_AT LEDGER_HEADER_BYTES
#define SLOW_NS  50000000

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

/* The reader's pread(): that of tables takes a while. */
ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    struct timespec slow = {.tv_nsec = SLOW_NS};
    if (offset >= (off_t)TABLE_AT && !began.realtime_ns) {
        began.realtime_ns = now_ns(CLOCK_REALTIME);
        began.monotonic_ns = now_ns(CLOCK_MONOTONIC);
        nanosleep(&slow, NULL);
    }
    ssize_t n = syscall(SYS_pread64, fd, to, bytes, offset);
    done.realtime_ns = now_ns(CLOCK_REALTIME);
    return n;
}

/* A ledger with one sample, of an image that began a minute ago. */
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
    int fd = memfd_create("ledger", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
    assert_int_equal(pwrite(fd, s, sizeof(*s), TABLE_AT), sizeof(*s));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("the time of a copy is before all that is copied", time_is_before_the_tables),
    };
    return cmocka_run_group_tests_name("ledger_copy", tests, NULL, NULL);
}
