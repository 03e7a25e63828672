/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect/spaces, layers and sideband_record, fed with records made by hand: times, forks, numbers that are used
 * again, what comes late, what is bounded; and a history that is also kept page by page in an array.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/perf_event.h>

#include "collect/addrspace/address_spaces.h"
#include "collect/addrspace/proc_maps.h"

/* No process has these. */
#define PID  0x7ffffff0
#define KID  0x7ffffff1
#define PAGE 4096ull

static struct sideband_record map(pid_t pid, uint64_t time_ns, uint64_t start, uint64_t end, const char *path)
{
    return (struct sideband_record){.type = SIDEBAND_MAP,
                                    .time_ns = time_ns,
                                    .pid = pid,
                                    .tid = pid,
                                    .start = start,
                                    .end = end,
                                    .page_offset = 0,
                                    .protection = PROT_READ,
                                    .flags = MAP_PRIVATE,
                                    .text = path};
}

static void take_map(struct address_spaces *s, pid_t pid, uint64_t time_ns, uint64_t start, uint64_t end,
                     const char *path)
{
    struct sideband_record r = map(pid, time_ns, start, end, path);
    address_spaces_take(s, &r);
}

static void take_fork(struct address_spaces *s, pid_t parent, pid_t pid, pid_t tid, uint64_t time_ns)
{
    address_spaces_take(s, &(struct sideband_record){.type = SIDEBAND_FORK,
                                                     .time_ns = time_ns,
                                                     .pid = pid,
                                                     .tid = tid,
                                                     .parent_pid = parent,
                                                     .text = ""});
}

static void take_exit(struct address_spaces *s, pid_t pid, pid_t tid, uint64_t time_ns)
{
    address_spaces_take(s,
                        &(struct sideband_record){
                            .type = SIDEBAND_EXIT, .time_ns = time_ns, .pid = pid, .tid = tid, .text = ""});
}

static void take_name(struct address_spaces *s, pid_t pid, uint64_t time_ns, const char *name, bool exec)
{
    address_spaces_take(
        s,
        &(struct sideband_record){
            .type = SIDEBAND_NAME, .time_ns = time_ns, .pid = pid, .tid = pid, .exec = exec, .text = name});
}

/* The path at an address; NULL: nothing is mapped. */
static const char *path_at(struct address_spaces *s, pid_t pid, uint64_t time_ns, uint64_t address)
{
    struct space_mapping m;
    if (!address_spaces_find(s, pid, time_ns, address, &m))
        return NULL;
    return m.file ? m.file->path : "";
}

static void is_at(struct address_spaces *s, pid_t pid, uint64_t time_ns, uint64_t address, const char *path)
{
    const char *found = path_at(s, pid, time_ns, address);
    if (!path)
        assert_null(found);
    else
        assert_string_equal(found ? found : "(nothing)", path);
}

static struct address_spaces *with_process(const struct address_spaces_options *options)
{
    struct address_spaces *s = address_spaces_new(NULL, options);
    take_fork(s, 1, PID, PID, 100);
    take_name(s, PID, 110, "first", true);
    take_map(s, PID, 120, 0x10000, 0x20000, "/a");
    return s;
}

static void times(void **state)
{
    (void)state;
    struct address_spaces *s = with_process(NULL);
    take_map(s, PID, 200, 0x18000, 0x1a000, "/b");
    is_at(s, PID, 119, 0x18000, NULL);
    is_at(s, PID, 120, 0x18000, "/a");
    is_at(s, PID, 199, 0x19fff, "/a");
    is_at(s, PID, 200, 0x19fff, "/b");
    is_at(s, PID, 200, 0x17fff, "/a");
    is_at(s, PID, 200, 0x1a000, "/a");
    is_at(s, PID, 200, 0x20000, NULL);
    take_map(s, PID, 150, 0x18000, 0x19000, "/late");
    is_at(s, PID, 160, 0x18000, "/late");
    is_at(s, PID, 200, 0x18000, "/b");
    address_spaces_free(s);
}

static void forks(void **state)
{
    (void)state;
    struct address_spaces *s = with_process(NULL);
    take_fork(s, PID, KID, KID, 200);
    take_map(s, PID, 210, 0x10000, 0x11000, "/parent");
    take_map(s, KID, 220, 0x11000, 0x12000, "/child");
    is_at(s, PID, 300, 0x10000, "/parent");
    is_at(s, PID, 300, 0x11000, "/a");
    is_at(s, KID, 300, 0x10000, "/a");
    is_at(s, KID, 300, 0x11000, "/child");
    is_at(s, KID, 199, 0x10000, NULL);
    take_map(s, PID, 190, 0x12000, 0x13000, "/late"); /* before the fork: both have it */
    is_at(s, PID, 300, 0x12000, "/late");
    is_at(s, KID, 300, 0x12000, "/late");
    take_exit(s, PID, PID, 310);
    is_at(s, KID, 400, 0x10000, "/a");
    take_name(s, KID, 500, "second", true);
    is_at(s, KID, 500, 0x10000, NULL);
    is_at(s, KID, 499, 0x10000, "/a");
    struct address_spaces_process p;
    assert_true(address_spaces_process(s, KID, 499, &p));
    assert_string_equal(p.name, "first");
    assert_int_equal(p.parent_pid, PID);
    assert_int_equal(p.began_ns, 200);
    assert_true(address_spaces_process(s, KID, 500, &p));
    assert_string_equal(p.name, "second");
    assert_int_equal(p.image_ns, 500);
    assert_int_equal(p.ended_ns, 0);
    address_spaces_free(s);
}

static void numbers(void **state)
{
    (void)state;
    struct address_spaces *s = with_process(NULL);
    struct address_spaces_process p;
    take_exit(s, PID, PID, 200);
    take_fork(s, 1, PID, PID, 300);
    take_name(s, PID, 300, "other", true);
    take_map(s, PID, 310, 0x10000, 0x20000, "/other");
    is_at(s, PID, 200, 0x10000, "/a");
    is_at(s, PID, 250, 0x10000, "/a"); /* what comes in behind its end */
    is_at(s, PID, 310, 0x10000, "/other");
    assert_true(address_spaces_process(s, PID, 250, &p));
    assert_string_equal(p.name, "first");
    assert_int_equal(p.ended_ns, 200);
    assert_true(address_spaces_process(s, PID, 310, &p));
    assert_string_equal(p.name, "other");
    take_fork(s, 1, PID, PID, 400); /* an end without a record */
    assert_true(address_spaces_process(s, PID, 399, &p));
    assert_int_equal(p.ended_ns, 400);
    address_spaces_free(s);
}

static void threads(void **state)
{
    (void)state;
    struct address_spaces *s = with_process(NULL);
    struct address_spaces_process p;
    take_fork(s, PID, PID, KID, 200);
    take_exit(s, PID, PID, 210);
    assert_true(address_spaces_process(s, PID, 300, &p));
    assert_int_equal(p.ended_ns, 0);
    take_map(s, PID, 220, 0x30000, 0x31000, "/by-thread");
    is_at(s, PID, 230, 0x30000, "/by-thread");
    take_exit(s, PID, KID, 240);
    assert_true(address_spaces_process(s, PID, 300, &p));
    assert_int_equal(p.ended_ns, 240);
    address_spaces_free(s);
}

static void take_gap(struct address_spaces *s, uint64_t since_ns, uint64_t time_ns)
{
    address_spaces_take(
        s, &(struct sideband_record){
               .type = SIDEBAND_GAP, .since_ns = since_ns, .time_ns = time_ns, .lost = 1, .text = ""});
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The gap of a CPU that had been silent for long begins before what another CPU told, and before the process was
 * read. */
static void lost_ends(void **state)
{
    (void)state;
    struct address_spaces *s = with_process(NULL);
    struct address_spaces_process p;
    take_gap(s, 50, 300);
    assert_true(address_spaces_process(s, PID, 120, &p));
    assert_int_equal(p.ended_ns, 120);
    is_at(s, PID, 120, 0x10000, "/a");
    address_spaces_free(s);

    s = address_spaces_new(NULL, NULL);
    pid_t pid = fork();
    if (!pid)
        for (;;)
            pause();
    uint64_t began = now_ns();
    take_fork(s, 1, pid, pid, began);
    uint64_t alive = now_ns();
    bool was_known = address_spaces_process(s, pid, alive, &p) && p.complete;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(was_known);
    take_gap(s, 50, now_ns());
    assert_true(address_spaces_process(s, pid, alive, &p));
    assert_int_equal(p.began_ns, began);
    assert_true(p.ended_ns >= alive);
    address_spaces_free(s);
}

static void bounds(void **state)
{
    (void)state;
    struct address_spaces *s = address_spaces_new(NULL, &(struct address_spaces_options){.ended_max = 10});
    struct address_spaces_process p;
    for (pid_t i = 0; i < 100; i++) {
        pid_t pid = PID - i % 7;
        take_fork(s, 1, pid, pid, 1000u + (uint64_t)i * 10);
        take_exit(s, pid, pid, 1005u + (uint64_t)i * 10);
    }
    struct address_spaces_counts counts = address_spaces_counts(s);
    assert_int_equal(counts.ended, 10);
    assert_int_equal(counts.forgotten, 90);
    assert_true(address_spaces_process(s, PID - 90 % 7, 1902, &p)); /* the tenth from behind */
    assert_int_equal(p.began_ns, 1900);
    assert_false(address_spaces_process(s, PID - 89 % 7, 1892, &p));
    address_spaces_free(s);
}

static void shells(void **state)
{
    (void)state;
    struct address_spaces *s =
        with_process(&(struct address_spaces_options){.back_ns = 1000, .ended_max = 5});
    for (uint64_t i = 1; i < 5000; i++) {
        take_map(s, PID, i * 1000, 0x100000 + i % 100 * PAGE, 0x101000 + i % 100 * PAGE,
                 i % 2 ? "/odd" : "/even");
        take_fork(s, PID, KID, KID, i * 1000 + 500);
        take_exit(s, KID, KID, i * 1000 + 600);
    }
    is_at(s, KID, 4999550, 0x100000 + 98 * PAGE, "/even");
    is_at(s, PID, 4999550, 0x100000 + 99 * PAGE, "/odd");
    is_at(s, PID, 4999550, 0x10000, "/a");
    address_spaces_free(s);
}

/* ---- a history kept twice ---- */

#define PAGES   512u
#define CHANGES 6000u

static void history(void **state)
{
    (void)state;
    static uint16_t truth[CHANGES][PAGES]; /* number of the change + 1 */
    struct address_spaces *s = with_process(&(struct address_spaces_options){.back_ns = 1000});
    unsigned seed = 1;
    for (unsigned i = 0; i < CHANGES; i++) {
        char path[32];
        uint64_t from = (unsigned)rand_r(&seed) % PAGES, to = from + 1 + (unsigned)rand_r(&seed) % 40;
        to = to < PAGES ? to : PAGES;
        memcpy(truth[i], truth[i ? i - 1 : 0], sizeof(truth[i]));
        for (uint64_t p = from; p < to; p++)
            truth[i][p] = (uint16_t)(i + 1);
        snprintf(path, sizeof(path), "/change-%u", i + 1);
        take_map(s, PID, 1000 + i, (1 << 20) + from * PAGE, (1 << 20) + to * PAGE, path);
        for (int n = 0; n < 20; n++) {
            unsigned back = (unsigned)rand_r(&seed) % (i < 900 ? i + 1 : 900), when = i - back;
            unsigned page = (unsigned)rand_r(&seed) % PAGES;
            snprintf(path, sizeof(path), "/change-%u", (unsigned)truth[when][page]);
            is_at(s, PID, 1000 + when, (1 << 20) + page * PAGE + 7, truth[when][page] ? path : NULL);
        }
    }
    address_spaces_free(s);
}

/* ---- heap and stack ---- */

static enum mapping_kind kind_at(struct address_spaces *s, uint64_t time_ns, uint64_t address)
{
    struct space_mapping m;
    address_spaces_find(s, PID, time_ns, address, &m);
    return m.kind;
}

static void kinds(void **state)
{
    (void)state;
    struct address_spaces *s = address_spaces_new(NULL, NULL);
    take_fork(s, 1, PID, PID, 100);
    take_name(s, PID, 110, "kinds", true);
    take_map(s, PID, 115, 0x7ff000000000, 0x7ff000021000, "[stack]");
    take_map(s, PID, 120, 0x400000, 0x410000, "/program");
    take_map(s, PID, 121, 0x410000, 0x412000, ""); /* its bss */
    take_map(s, PID, 122, 0x7f0000000000, 0x7f0000001000, "[vdso]");
    take_map(s, PID, 130, 0x7f1000000000, 0x7f1000001000, "");
    take_map(s, PID, 140, 0x1400000, 0x1421000, "");
    take_map(s, PID, 150, 0x1400000, 0x1500000, "[heap]");
    assert_int_equal(kind_at(s, 200, 0x411000), MAPPING_ANONYMOUS);
    assert_int_equal(kind_at(s, 145, 0x1400000), MAPPING_HEAP);
    assert_int_equal(kind_at(s, 200, 0x1450000), MAPPING_HEAP);
    assert_int_equal(kind_at(s, 200, 0x7f1000000000), MAPPING_ANONYMOUS);
    assert_int_equal(kind_at(s, 200, 0x7ff000000000), MAPPING_STACK);
    assert_int_equal(kind_at(s, 200, 0x7ff000000000 - 1), MAPPING_STACK); /* it may grow */
    assert_int_equal(kind_at(s, 200, 0x7ff000000000 - (64ull << 20)), MAPPING_NONE);
    assert_int_equal(proc_maps_kind("/dev/zero", MAP_PRIVATE), MAPPING_ANONYMOUS);
    assert_int_equal(proc_maps_kind("/dev/zero (deleted)", MAP_SHARED), MAPPING_SHARED);
    assert_int_equal(proc_maps_kind("/memfd:x (deleted)", MAP_SHARED | MAP_HUGETLB), MAPPING_HUGETLB);
    assert_int_equal(proc_maps_kind("[uprobes]", MAP_PRIVATE), MAPPING_UNKNOWN);
    address_spaces_free(s);
}

/* ---- what nobody would send ---- */

static void lines(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "x",
                                      "1000",
                                      "1000-2000",
                                      "1000-2000 r-xp",
                                      "2000-1000 r-xp 0 0:0 0 ",
                                      "1000-2000 rw 0 0:0 0 ",
                                      "1000-2000 r-xp 0 0-0 0 /a"};
    struct mapped_files files = {0};
    struct mapping_list list = {0};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(proc_maps_take_line(bad[i], &files, &list));
    assert_int_equal(list.len, 0);
    assert_true(proc_maps_take_line("1000-3000 r-xs 00002000 fe:01 77                     /a b (deleted)",
                                    &files, &list));
    assert_int_equal(list.at[0].page_offset, 0x2000);
    assert_int_equal(list.at[0].flags, MAP_SHARED);
    assert_int_equal(list.at[0].file->inode, 77);
    assert_int_equal(list.at[0].file->major, 0xfe);
    assert_string_equal(list.at[0].file->path, "/a b (deleted)");
    proc_maps_release(&files, &list);
    mapped_files_release(&files);
}

/* Records of each kind, cut at each length and with bytes changed: none is read beyond its end (each lies at one). */
static void hostile(void **state)
{
    (void)state;
    static const uint32_t types[] = {PERF_RECORD_MMAP2, PERF_RECORD_COMM, PERF_RECORD_FORK,
                                     PERF_RECORD_EXIT,  PERF_RECORD_LOST, 99};
    unsigned seed = 7, understood = 0;
    struct sideband_record r;
    struct address_spaces *s = address_spaces_new(NULL, &(struct address_spaces_options){.ended_max = 100});
    for (int i = 0; i < 200000; i++) {
        size_t bytes = (size_t)rand_r(&seed) % 160;
        unsigned char *data = malloc(bytes ? bytes : 1); /* so that a sanitizer, or valgrind, sees its end */
        for (size_t k = 0; k < bytes; k++)
            data[k] = (unsigned char)(rand_r(&seed) % 3 ? 0 : rand_r(&seed));
        struct perf_event_header header = {.type = types[rand_r(&seed) % 6],
                                           .misc = rand_r(&seed) % 2 ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0,
                                           .size = (uint16_t)(rand_r(&seed) % 50 ? bytes : bytes + 8)};
        memcpy(data, &header, bytes < sizeof(header) ? bytes : sizeof(header));
        if (sideband_record_parse(data, bytes, &r)) {
            understood++;
            assert_true(r.type != SIDEBAND_MAP || r.start < r.end);
            r.pid = r.pid > 0 ? PID : 0;
            r.parent_pid = r.parent_pid > 0 ? KID : 0;
            address_spaces_take(s, &r);
        }
        free(data);
    }
    assert_true(understood > 1000);
    address_spaces_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"the latest mapping before a time is in effect, whenever it was told", times, NULL, NULL, NULL},
        {"a child has what its parent had, and each changes its own", forks, NULL, NULL, NULL},
        {"a number that is used again is another process", numbers, NULL, NULL, NULL},
        {"a process ends with its last thread", threads, NULL, NULL, NULL},
        {"an end that was lost is not before what is known of the process", lost_ends, NULL, NULL, NULL},
        {"ended processes are bounded, the oldest go first, and are counted", bounds, NULL, NULL, NULL},
        {"one that forks thousands of times stays small and right", shells, NULL, NULL, NULL},
        {"a long history is right page by page, and at times past", history, NULL, NULL, NULL},
        {"heap and stack are known by where they are", kinds, NULL, NULL, NULL},
        {"lines of maps that are none are refused", lines, NULL, NULL, NULL},
        {"malformed records are refused", hostile, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
