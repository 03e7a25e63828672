/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The OOM killer's lines in the kernel's log; rates between two looks; and what of a machine is out of the ordinary:
 * each note on a machine that has just this, and none on one that has nothing.
 */
#include "test_overview.h"

#include <stdlib.h>

#include "collect/kernel/kmsg.h"
#include "model/overview/overview.h"

#define MIB (UINT64_C(1) << 20)

static void take(struct kmsg *k, unsigned priority, const char *text)
{
    struct buf record = BUF_INIT;
    buf_printf(&record, "%u,1234,5000000,-;%s\n SUBSYSTEM=x\n", priority, text);
    kmsg_take(k, buf_str(&record));
    buf_release(&record);
}

#define KILLED(name)                                                                                         \
    "Killed process 77 (" name ") total-vm:5781056kB, anon-rss:256kB, file-rss:1456kB, shmem-rss:260096kB, " \
    "UID:1000 pgtables:600kB oom_score_adj:-5"

static void kills_are_found_in_the_log(void **state)
{
    (void)state;
    struct kmsg k = {.fd = -1};
    take(&k, 4, "t3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0");
    take(&k, 6,
         "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/"
         "a,task_memcg=/a/b,"
         "task=x,pid=1,uid=2,pid=77,uid=0");
    take(&k, 3, "Memory cgroup out of memory: " KILLED("x) total-vm:1 (y"));
    take(&k, 3, "Out of memory: " KILLED("big"));
    take(&k, 3, "Out of memory (oom_kill_allocating_task): " KILLED("big"));
    assert_int_equal(k.kills.len, 3);
    const struct overview_kill *one = &k.kills.at[0], *other = &k.kills.at[1];
    assert_true(one->cgroup_limit && !other->cgroup_limit);
    assert_string_equal(one->name, "x) total-vm:1 (y");
    assert_string_equal(one->cgroup, "/a");
    assert_string_equal(one->trigger, "t3");
    assert_null(other->cgroup);
    assert_int_equal(one->pid, 77);
    assert_int_equal(one->uid, 1000);
    assert_int_equal(one->anon_bytes, 256 * 1024);
    assert_int_equal(one->file_bytes, 1456 * 1024);
    assert_int_equal(one->shmem_bytes, 260096 * 1024);
    assert_int_equal(one->page_table_bytes, 600 * 1024);
    assert_int_equal(one->score_adjust, -5);
    assert_int_equal(one->boot_ns, 5000000000ull);
    assert_int_equal(k.since_ns, 5000000000ull); /* 1,234 records were before */
    kmsg_close(&k);
    k = (struct kmsg){.fd = -1};
    kmsg_take(&k, "6,0,1000000,-;Linux version 6\n");
    take(&k, 3, "Out of memory: " KILLED("big"));
    assert_int_equal(k.since_ns, 0); /* it has all */
    kmsg_close(&k);
}

static void others_cannot_write_a_kill(void **state)
{
    (void)state;
    struct kmsg k = {.fd = -1};
    take(&k, 8 + 3, "Out of memory: " KILLED("user")); /* LOG_USER, as /dev/kmsg takes it from programs */
    take(&k, 24 + 3, "Out of memory: " KILLED("daemon"));
    take(&k, 3, "usb: Out of memory: " KILLED("device")); /* not at the beginning */
    take(&k, 3, "Out of memory: Killed process 77 (cut");
    take(&k, 3, "Out of memory: Killed process");
    kmsg_take(&k, "");
    kmsg_take(&k, "3,1,2");
    kmsg_take(&k, ";Out of memory: " KILLED("a"));
    assert_int_equal(k.kills.len, 0);
    kmsg_close(&k);
}

/* The tools that a note may point to in these tests: of the two that answer swap-ins only the second one. */
static bool has_tool(const char *name)
{
    return !strcmp(name, "vmscan") || !strcmp(name, "drsnoop") || !strcmp(name, "faults") ||
           !strcmp(name, "oomkill") || !strcmp(name, "kmem");
}

static bool has_all(const char *name)
{
    (void)name;
    return true;
}

static struct overview quiet(void)
{
    struct overview m = {.taken_ns = 1000000000000000, .boot_ns = 1000, .has_tool = has_tool};
    struct overview_zone z = {.name = "Normal",
                              .free_bytes = 100 * MIB,
                              .min_bytes = 10 * MIB,
                              .low_bytes = 20 * MIB,
                              .high_bytes = 30 * MIB,
                              .managed_bytes = 1000 * MIB};
    overview_memory_set(&m, OVERVIEW_TOTAL, 1000 * MIB);
    overview_memory_set(&m, OVERVIEW_AVAILABLE, 500 * MIB);
    overview_memory_set(&m, OVERVIEW_SWAP_TOTAL, 100 * MIB);
    overview_memory_set(&m, OVERVIEW_SWAP_FREE, 50 * MIB);
    *vec_push(&m.zones) = z;
    for (int i = 0; i < OVERVIEW_COUNTS; i++)
        m.rate[i] = 0;
    for (int i = 0; i < OVERVIEW_RESOURCES; i++)
        m.pressure[i].some = m.pressure[i].full = (struct overview_stall){.known = true, .last = -1};
    return m;
}

/* Exactly one note, with these words; and the machine is released. */
static void expect(struct overview *m, bool urgent, const char *words)
{
    overview_note(m);
    assert_int_equal(m->notes.len, words ? 1 : 0);
    if (words) {
        if (!strstr(m->notes.at[0].text, words))
            fail_msg("\"%s\" is not in: %s", words, m->notes.at[0].text);
        assert_int_equal(m->notes.at[0].urgent, urgent);
    }
    overview_release(m);
}

static void a_quiet_machine_has_no_notes(void **state)
{
    (void)state;
    struct overview m = quiet();
    expect(&m, false, NULL);
}

static void each_note_has_its_bound(void **state)
{
    (void)state;
    struct overview m = quiet();
    m.zones.at[0].free_bytes = 20 * MIB - 1;
    expect(&m, false, "zone Normal of node 0 has 20 MiB free, below its low watermark of 20 MiB");
    m = quiet();
    m.zones.at[0].free_bytes = 5 * MIB;
    expect(&m, true, "below its min watermark of 10 MiB");
    m = quiet();
    overview_memory_set(&m, OVERVIEW_AVAILABLE, 49 * MIB);
    expect(&m, true, "only 49 MiB of 1000 MiB are available (4.9 %)");
    m = quiet();
    overview_memory_set(&m, OVERVIEW_SWAP_FREE, 9 * MIB);
    expect(&m, true, "swap is 91 % full: 9 MiB of 100 MiB left");
    m = quiet();
    m.pressure[OVERVIEW_PSI_MEMORY].some.avg10 = 10;
    expect(&m, true, "memory pressure is high");
    m = quiet();
    m.pressure[OVERVIEW_PSI_MEMORY].some.avg10 = 9.99;
    expect(&m, true, NULL);
    m = quiet();
    m.pressure[OVERVIEW_PSI_MEMORY].full.last = 5;
    expect(&m, true, "all tasks waited for memory 5 %");
    m = quiet();
    m.rate[OVERVIEW_KSWAPD_RUNS] = 2;
    expect(&m, false, "kswapd is busy: woken 2 times a second");
    m = quiet();
    m.rate[OVERVIEW_DIRECT_STALLS] = 3;
    expect(&m, true, "3 allocations a second stall in direct reclaim");
    m = quiet();
    m.rate[OVERVIEW_REFAULTED_FILE] = 2.0 * MIB;
    expect(&m, true, "the machine thrashes (allium sys vmscan)");
    m = quiet();
    m.n_stuck = 2;
    expect(&m, false, "2 processes or threads of the kernel in uninterruptible sleep");
    m = quiet();
    *vec_push(&m.processes) = (struct overview_process){.pid = 5, .name = "a", .query_result = OVERVIEW_MUTE};
    expect(&m, false, "a (pid 5): some figures are missing");
    m = quiet();
    *vec_push(&m.cgroups) =
        (struct overview_cgroup){.path = mem_strdup("/x"), .usage_bytes = 95, .limit_bytes = 100};
    expect(&m, false, "cgroup /x uses 95 % of its limit");
}

static void who_thrashes_is_named(void **state)
{
    (void)state;
    struct overview m = quiet();
    m.rate[OVERVIEW_REFAULTED_FILE] = m.rate[OVERVIEW_SWAPPED_IN] = 0.6 * MIB;
    m.rate[OVERVIEW_REFAULTED_ANON] = 2.0 * MIB;
    m.faulter = (struct overview_faulter){.pid = 7,
                                          .name = "eater",
                                          .major_per_s = 1234,
                                          .cgroup = mem_strdup("/x"),
                                          .usage_bytes = 96,
                                          .limit_bytes = 100};
    *vec_push(&m.cgroups) =
        (struct overview_cgroup){.path = mem_strdup("/x"), .usage_bytes = 96, .limit_bytes = 100};
    expect(&m, true,
           "2.60 MiB a second are read back soon after they were reclaimed: a cgroup thrashes; most major "
           "faults: "
           "eater (pid 7), 1.23k a second, in cgroup /x, which uses 96 % of its limit of 100 B (allium sys "
           "drsnoop)");
    m = quiet();
    m.rate[OVERVIEW_SWAPPED_IN] = 2.0 * MIB;
    m.faulter = (struct overview_faulter){.pid = 7, .name = "eater", .major_per_s = 3};
    expect(
        &m, true,
        "2 MiB a second come in from swap; most major faults: eater (pid 7), 3 a second (allium sys faults)");
}

/* Exactly one note, which ends with these words. */
static void expect_end(struct overview *m, const char *words)
{
    overview_note(m);
    assert_int_equal(m->notes.len, 1);
    const char *text = m->notes.at[0].text;
    assert_true(strlen(text) >= strlen(words));
    assert_string_equal(text + strlen(text) - strlen(words), words);
    overview_release(m);
}

static void a_note_points_to_the_best_tool_there_is(void **state)
{
    static const struct {
        enum overview_count count;
        double rate;
        const char *some, *all, *none;
    } notes[] = {
        {OVERVIEW_SWAPPED_IN, 2 * MIB, " from swap (allium sys faults)", " from swap (allium sys swapin)",
         " come in from swap"},
        {OVERVIEW_MAJOR_FAULTS, 1000, " to be read (allium sys faults --by file)",
         " to be read (allium sys ffaults)", " wait for files to be read"},
        {OVERVIEW_HUGE_FAILED, 100, " get small ones", " get small ones (allium sys hfaults)",
         "100 faults a second want a huge page and get small ones"},
        {OVERVIEW_NODE_MOVED, 2 * MIB, " on another node", " on another node (allium sys numamove)",
         "2 MiB a second are moved between NUMA nodes, for tasks that run on another node"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++) {
        struct overview m = quiet();
        m.rate[notes[i].count] = notes[i].rate;
        expect_end(&m, notes[i].some);
        m = quiet();
        m.rate[notes[i].count] = notes[i].rate;
        m.has_tool = has_all;
        expect_end(&m, notes[i].all);
        m = quiet();
        m.rate[notes[i].count] = notes[i].rate;
        m.has_tool = NULL;
        expect_end(&m, notes[i].none);
    }
    struct overview m = quiet();
    overview_memory_set(&m, OVERVIEW_SLAB_UNRECLAIMABLE, 201 * MIB);
    expect_end(&m, " cannot be reclaimed (allium sys kmem --live)");
    m = quiet();
    m.rate[OVERVIEW_MAJOR_FAULTS] = 999;
    m.rate[OVERVIEW_HUGE_FAILED] = 99;
    m.rate[OVERVIEW_NODE_MOVED] = MIB;
    expect(&m, false, NULL);
    m = quiet(); /* the note on swap has the faults */
    m.rate[OVERVIEW_MAJOR_FAULTS] = 5000;
    m.rate[OVERVIEW_SWAPPED_IN] = 20.0 * MIB;
    expect_end(&m, " from swap (allium sys faults)");
}

static void kills_of_the_last_hour_are_noted(void **state)
{
    (void)state;
    struct overview m = quiet();
    uint64_t minute = UINT64_C(60000000000);
    for (int i = 0; i < 3; i++)
        *vec_push(&m.kills) = (struct overview_kill){
            .pid = i, .name = "p", .at_ns = m.taken_ns - (61 - 30 * (uint64_t)i) * minute};
    expect(
        &m, true,
        "2 OOM kills in the last hour, the latest p (pid 2), 60 s ago, because the machine was out of memory "
        "(allium sys oomkill)");
    m = quiet(); /* the log is a ring, and may not go back so far; nor does it always tell the cgroup */
    *vec_push(&m.kills) =
        (struct overview_kill){.pid = 1, .name = "p", .cgroup_limit = true, .at_ns = m.taken_ns - 2 * minute};
    m.kills_since_ns = m.taken_ns - 12 * minute;
    expect(&m, true,
           "at least 1 OOM kill in the last hour (the log goes back 12m00s), the latest p (pid 1), 2m00s "
           "ago, at "
           "the limit of a cgroup (allium sys oomkill)");
    m = quiet();
    *vec_push(&m.kills) = (struct overview_kill){.pid = 1, .name = "p", .at_ns = m.taken_ns - 61 * minute};
    expect(&m, true, NULL);
}

static void rates_are_of_the_interval(void **state)
{
    (void)state;
    struct overview before = {.boot_ns = 1000000000}, now = {.boot_ns = 3000000000};
    overview_count_set(&before.counts, OVERVIEW_FAULTS, 100);
    overview_count_set(&now.counts, OVERVIEW_FAULTS, 500);
    overview_count_set(&now.counts, OVERVIEW_OOM_KILLS, 1); /* not known before */
    overview_count_set(&before.counts, OVERVIEW_READ, 9);
    overview_count_set(&now.counts, OVERVIEW_READ, 3); /* backwards */
    before.pressure[0].some = (struct overview_stall){.known = true, .total_us = 1000};
    now.pressure[0].some = (struct overview_stall){.known = true, .total_us = 501000};
    *vec_push(&before.processes) = (struct overview_process){.pid = 1, .start_ticks = 7, .minor = 10};
    *vec_push(&before.processes) = (struct overview_process){.pid = 2, .start_ticks = 8, .minor = 10};
    *vec_push(&now.processes) =
        (struct overview_process){.pid = 1, .start_ticks = 7, .minor = 28, .major = 2};
    *vec_push(&now.processes) =
        (struct overview_process){.pid = 2, .start_ticks = 9, .minor = 99}; /* another one */
    overview_since(&now, &before);
    assert_int_equal(now.interval_ns, 2000000000);
    assert_true(now.rate[OVERVIEW_FAULTS] == 200 && now.rate[OVERVIEW_OOM_KILLS] < 0 &&
                now.rate[OVERVIEW_READ] < 0);
    assert_true(now.pressure[0].some.last == 25 && now.pressure[1].some.last < 0);
    assert_true(now.processes.at[0].faults_per_s == 10 && now.processes.at[1].faults_per_s < 0);
    assert_true(now.faulter.pid == 1 && now.faulter.major_per_s == 1);
    overview_sort_processes(&now.processes, OVERVIEW_BY_FAULTS, 1);
    assert_int_equal(now.processes.len, 1);
    assert_int_equal(now.processes.at[0].pid, 1);
    overview_release(&before);
    overview_release(&now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kills_are_found_in_the_log),
        cmocka_unit_test(others_cannot_write_a_kill),
        cmocka_unit_test(a_quiet_machine_has_no_notes),
        cmocka_unit_test(each_note_has_its_bound),
        cmocka_unit_test(kills_of_the_last_hour_are_noted),
        cmocka_unit_test(who_thrashes_is_named),
        cmocka_unit_test(rates_are_of_the_interval),
        cmocka_unit_test(a_note_points_to_the_best_tool_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
