/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect's parsers of the kernel's texts about memory, on what Linux 6.1, 6.12 and 6.18 have written, and on what
 * none would. The expected figures were read off the texts by eye.
 */
#include "test_overview.h"

#include <stdlib.h>

#include "collect/kernel/cgroup_memory.h"
#include "collect/kernel/kmsg.h"
#include "collect/kernel/meminfo.h"
#include "collect/process/process_query.h"
#include "collect/process/processes.h"

#define PAGE 4096u

static struct overview parse_all(const char *version)
{
    struct overview m = {.taken_ns = 1};
    char *meminfo = recorded(version, "meminfo"), *vmstat = recorded(version, "vmstat");
    char *zones = recorded(version, "zoneinfo"), *slabs = recorded(version, "slabinfo");
    meminfo_parse(&m, meminfo);
    vmstat_parse(&m, vmstat, PAGE);
    zoneinfo_parse(&m, zones, PAGE);
    slabinfo_parse(&m, slabs, PAGE);
    overview_account(&m);
    free(meminfo);
    free(vmstat);
    free(zones);
    free(slabs);
    return m;
}

static void meminfo_of_each_kernel(void **state)
{
    (void)state;
    static const uint64_t total_kib[] = {223632, 218368, 24684092}, free_kib[] = {196572, 198196, 21124500};
    for (size_t i = 0; i < N_VERSIONS; i++) {
        struct overview m = parse_all(versions[i]);
        assert_int_equal(m.memory[OVERVIEW_TOTAL], total_kib[i] * 1024);
        assert_int_equal(m.memory[OVERVIEW_FREE], free_kib[i] * 1024);
        for (int kind = 0; kind < OVERVIEW_MEMORY_KINDS; kind++) {
            /* Debian's cloud kernels have no zswap in 6.12, and none shows it without */
            if (kind != OVERVIEW_ZSWAP && kind != OVERVIEW_ZSWAPPED && kind != OVERVIEW_ZSMALLOC)
                assert_true(overview_memory_has(&m, (enum overview_memory)kind));
        }
        assert_true(m.memory[OVERVIEW_UNACCOUNTED] < m.memory[OVERVIEW_TOTAL] / 10);
        overview_release(&m);
    }
}

static void counts_of_each_kernel(void **state)
{
    (void)state;
    static const uint64_t faults[] = {316, 314, 1592767888}, kills[] = {0, 0, 1};
    for (size_t i = 0; i < N_VERSIONS; i++) {
        struct overview m = parse_all(versions[i]);
        assert_int_equal(m.counts.at[OVERVIEW_FAULTS], faults[i]);
        assert_int_equal(m.counts.at[OVERVIEW_OOM_KILLS], kills[i]);
        for (int count = 0; count < OVERVIEW_COUNTS; count++)
            assert_true(overview_count_has(&m.counts, (enum overview_count)count));
        overview_release(&m);
    }
}

static void reclaim_of_cgroups_is_what_the_machine_did_not_do(void **state)
{
    (void)state;
    struct overview m = parse_all("6.18"), other = {.taken_ns = 1};
    assert_int_equal(m.counts.at[OVERVIEW_SCANNED_CGROUP], 42012ull * PAGE);
    assert_int_equal(m.counts.at[OVERVIEW_STOLEN_CGROUP], 21767ull * PAGE);
    overview_release(&m);
    vmstat_parse(
        &other,
        "pgscan_kswapd 10\npgscan_direct 5\npgscan_khugepaged 2\npgscan_direct_throttle 99\npgscan_anon 8\n"
        "pgscan_file 12\nallocstall_dma 1\nallocstall_normal 2\npgpgin 3\npswpin 4\nswpin_zero "
        "5\nswpout_zero 7\nnr_zspages 6\n",
        PAGE);
    assert_int_equal(other.counts.at[OVERVIEW_SCANNED_KSWAPD], 10 * PAGE);
    assert_int_equal(other.counts.at[OVERVIEW_SCANNED_DIRECT], 7 * PAGE);
    assert_int_equal(other.counts.at[OVERVIEW_SCANNED_CGROUP], 3 * PAGE);
    assert_int_equal(other.counts.at[OVERVIEW_DIRECT_STALLS], 3);
    assert_int_equal(other.counts.at[OVERVIEW_READ], 3 * 1024);
    assert_int_equal(other.counts.at[OVERVIEW_SWAPPED_IN], (4 + 5) * PAGE);
    assert_int_equal(other.counts.at[OVERVIEW_SWAPPED_OUT], 7 * PAGE);
    assert_int_equal(other.memory[OVERVIEW_ZSMALLOC], 6 * PAGE);
    assert_false(overview_count_has(&other.counts, OVERVIEW_OOM_KILLS));
    overview_release(&other);
}

static void zones_of_each_kernel(void **state)
{
    (void)state;
    static const struct {
        uint64_t free, min, low, high, managed, cpu_lists;
    } dma32[] = {{45335, 428, 535, 642, 52068, 318}};
    struct overview m = parse_all("6.1");
    assert_int_equal(m.zones.len, 2); /* Normal, Movable and Device have no memory there */
    const struct overview_zone *z = &m.zones.at[1];
    assert_string_equal(z->name, "DMA32");
    assert_int_equal(z->free_bytes, dma32[0].free * PAGE);
    assert_int_equal(z->min_bytes, dma32[0].min * PAGE);
    assert_int_equal(z->low_bytes, dma32[0].low * PAGE);
    assert_int_equal(z->high_bytes, dma32[0].high * PAGE);
    assert_int_equal(z->managed_bytes, dma32[0].managed * PAGE);
    assert_int_equal(z->cpu_lists_bytes, dma32[0].cpu_lists * PAGE);
    overview_release(&m);
    m = parse_all("6.18");
    assert_int_equal(m.zones.len, 3);
    assert_string_equal(m.zones.at[2].name, "Normal");
    assert_int_equal(m.zones.at[2].low_bytes, 15660ull * PAGE);
    assert_int_equal(m.zones.at[2].managed_bytes, 2228224ull * PAGE);
    overview_release(&m);
}

static void slabs_nodes_and_pressure(void **state)
{
    (void)state;
    struct overview m = parse_all("6.18");
    assert_true(m.slabs.len == 28); /* two lines of headers */
    assert_string_equal(m.slabs.at[2].name, "bio-312");
    assert_int_equal(m.slabs.at[2].bytes, PAGE);
    assert_int_equal(m.slabs.at[2].objects, 12);
    assert_int_equal(m.slabs.at[2].object_bytes, 320);
    overview_release(&m);
    for (size_t i = 0; i < N_VERSIONS; i++) {
        struct overview_node n = {.id = 0};
        char *text = recorded(versions[i], "node_meminfo"), *stat = recorded(versions[i], "node_numastat");
        struct overview_pressure p = {.some.known = false};
        char *stalls = recorded(versions[i], "pressure");
        node_meminfo_parse(&n, text);
        node_numastat_parse(&n, stat);
        pressure_parse(&p, stalls);
        assert_true(n.total_bytes > 100u << 20 && n.free_bytes > 100u << 20 && n.free_bytes < n.total_bytes);
        assert_true(n.hit > 0);
        assert_true(p.some.known && p.full.known && p.some.avg10 == 0);
        free(text);
        free(stat);
        free(stalls);
    }
    struct overview_pressure p = {.some.known = false};
    pressure_parse(&p, "some avg10=12.34 avg60=5.60 avg300=0.07 total=123456789012\nfull avg10=nan avg60=0 "
                       "avg300=0 total=1\n");
    assert_true(p.some.avg10 == 12.34 && p.some.avg60 == 5.6 && p.some.avg300 == 0.07);
    assert_int_equal(p.some.total_us, 123456789012ull);
    assert_false(p.full.known);
}

static void swaps_with_odd_names(void **state)
{
    (void)state;
    struct overview m = {.taken_ns = 1};
    swaps_parse(&m, "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
                    "/dev/zram0                              partition\t1048572\t\t512\t\t100\n"
                    "/a\\040b\\011c\\134d\\040(deleted)             file\t\t65532\t\t0\t\t-2\n"
                    "/half file 1\nfile\n");
    assert_int_equal(m.swaps.len, 2);
    assert_string_equal(m.swaps.at[0].path, "/dev/zram0");
    assert_string_equal(m.swaps.at[0].type, "partition");
    assert_int_equal(m.swaps.at[0].size_bytes, 1048572ull * 1024);
    assert_int_equal(m.swaps.at[0].used_bytes, 512 * 1024);
    assert_int_equal(m.swaps.at[0].priority, 100);
    assert_string_equal(m.swaps.at[1].path, "/a b\tc\\d (deleted)");
    assert_int_equal(m.swaps.at[1].priority, -2);
    overview_release(&m);
}

static void processes_of_each_kernel(void **state)
{
    (void)state;
    static const struct {
        int pid, parent;
        const char *name;
        uint64_t minor, start, size, anon_kib, file_kib, shmem_kib, pss_kib;
    } want[] = {{86, 1, "busybox", 58, 978, 2379776, 4, 0, 0, 756},
                {140, 1, "busybox", 58, 1418, 2379776, 56, 4, 1408, 756},
                {2865, 30621, "bash", 181, 4775880, 4464640, 268, 2968, 0, 409}};
    for (size_t i = 0; i < N_VERSIONS; i++) {
        struct overview_process p = {.pid = 0};
        char *stat = recorded(versions[i], "stat"), *status = recorded(versions[i], "status");
        char *rollup = recorded(versions[i], "smaps_rollup");
        assert_true(process_parse_stat(&p, stat));
        process_parse_status(&p, status);
        assert_int_equal(p.pid, want[i].pid);
        assert_int_equal(p.parent, want[i].parent);
        assert_string_equal(p.name, want[i].name);
        assert_int_equal(p.state, 'R');
        assert_int_equal(p.minor, want[i].minor);
        assert_int_equal(p.start_ticks, want[i].start);
        assert_int_equal(p.size_bytes, want[i].size);
        assert_int_equal(p.anon_bytes, want[i].anon_kib * 1024);
        assert_int_equal(p.file_bytes, want[i].file_kib * 1024);
        assert_int_equal(p.shmem_bytes, want[i].shmem_kib * 1024);
        assert_int_equal(p.threads, 1);
        assert_true(process_parse_rollup(rollup, &p.pss_bytes));
        assert_int_equal(p.pss_bytes, want[i].pss_kib * 1024);
        free(stat);
        free(status);
        free(rollup);
    }
}

static void names_of_processes_are_no_syntax(void **state)
{
    (void)state;
    static const char rest[] = " S 1 2 3 4 -1 5 6 7 8 9 1 2 3 4 20 -5 3 0 777 4096 1 2\n";
    static const char *const names[] = {"a) R 99 (b", ")", "((", "", "x y", ") S 1 2 3 4"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct overview_process p = {.pid = 0};
        char text[256];
        snprintf(text, sizeof(text), "42 (%s)%s", names[i], rest);
        assert_true(process_parse_stat(&p, text));
        assert_string_equal(p.name, names[i]);
        assert_int_equal(p.parent, 1);
        assert_int_equal(p.threads, 3);
        assert_int_equal(p.start_ticks, 777);
        assert_int_equal(p.size_bytes, 4096);
    }
    struct overview_process p = {.pid = 0};
    static const char *const bad[] = {"",
                                      "42",
                                      "42 (a",
                                      "42 (a)",
                                      "42 (a) ",
                                      "42 (a) S",
                                      "0 (a) S 1 2",
                                      "99999999999 (a) S 1",
                                      "42 )a( S 1 2 3"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(process_parse_stat(&p, bad[i]));
}

static void mappings_of_each_kernel(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_VERSIONS; i++) {
        struct mappings maps = {0};
        char *text = recorded(versions[i], "smaps");
        mappings_parse(&maps, text);
        assert_true(maps.len >= 2);
        assert_true(strchr(maps.at[0].name, '/') == maps.at[0].name);
        assert_int_equal(strlen(maps.at[0].access), 4);
        assert_true(maps.at[0].rss_bytes <= maps.at[0].end - maps.at[0].start);
        if (i == 2) {
            assert_int_equal(maps.at[0].start, 0x55dad0c73000);
            assert_int_equal(maps.at[0].rss_bytes, 188 * 1024);
            assert_int_equal(maps.at[0].pss_bytes, 20 * 1024);
            assert_string_equal(maps.at[0].name, "/usr/bin/bash");
        }
        mappings_release(&maps);
        free(text);
    }
    struct mappings maps = {0};
    mappings_parse(&maps,
                   "Rss: 4 kB\n2000-1000 r--p 0 0 0 x\n1000-2000 r--p 0 0:0 7 /a b (deleted)\nSwap: 8 kB\n"
                   "Private_Dirty: 4 kB\nShared_Dirty: 4 kB\nAnonymous: 99999999999999999999 kB\n3000-4000 "
                   "rw-p 0 0:0 0\n");
    assert_int_equal(maps.len, 2);
    assert_string_equal(maps.at[0].name, "/a b (deleted)");
    assert_int_equal(maps.at[0].swap_bytes, 8192);
    assert_int_equal(maps.at[0].dirty_bytes, 8192);
    assert_int_equal(maps.at[0].anon_bytes, UINT64_MAX);
    assert_string_equal(maps.at[1].name, "");
    mappings_release(&maps);
}

static void control_groups_of_both_versions(void **state)
{
    (void)state;
    struct overview_cgroup one = {.version = 1}, two = {.version = 2};
    cgroup_parse_stat(&one, "rss 1\ncache 2\ntotal_rss 100\ntotal_cache 50\ntotal_shmem 20\n");
    cgroup_parse_kills(&one, "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n");
    assert_int_equal(one.anon_bytes, 100);
    assert_int_equal(one.file_bytes, 30);
    assert_int_equal(one.shmem_bytes, 20);
    assert_int_equal(one.oom_kills, 7);
    cgroup_parse_stat(&two, "anon 100\nfile 50\nkernel 9\nshmem 20\nanon_thp 4\nfile_mapped 7\n");
    cgroup_parse_kills(&two, "low 0\nhigh 0\nmax 3\noom 2\noom_kill 1\noom_group_kill 0\n");
    assert_int_equal(two.anon_bytes, 100);
    assert_int_equal(two.file_bytes, 30);
    assert_int_equal(two.kernel_bytes, 9);
    assert_int_equal(two.oom_kills, 1);
    assert_true(two.kernel_known && !one.kernel_known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meminfo_of_each_kernel),
        cmocka_unit_test(counts_of_each_kernel),
        cmocka_unit_test(reclaim_of_cgroups_is_what_the_machine_did_not_do),
        cmocka_unit_test(zones_of_each_kernel),
        cmocka_unit_test(slabs_nodes_and_pressure),
        cmocka_unit_test(swaps_with_odd_names),
        cmocka_unit_test(processes_of_each_kernel),
        cmocka_unit_test(names_of_processes_are_no_syntax),
        cmocka_unit_test(mappings_of_each_kernel),
        cmocka_unit_test(control_groups_of_both_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
