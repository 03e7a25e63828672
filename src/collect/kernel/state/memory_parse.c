/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/state/memory_parse.h"

#include <string.h>

#include "collect/kernel/proc_text.h"

static const struct {
    const char *name;
    enum memory_figure figure;
    bool prefix; /* all lines that begin so, one for each zone, are added up */
} names[] = {
    {"MemTotal", MEMORY_TOTAL, false},
    {"MemFree", MEMORY_FREE, false},
    {"Slab", MEMORY_SLAB, false},
    {"SReclaimable", MEMORY_SLAB_RECLAIMABLE, false},
    {"SUnreclaim", MEMORY_SLAB_UNRECLAIMABLE, false},
    {"VmallocUsed", MEMORY_VMALLOC_USED, false},
    {"compact_stall", MEMORY_COMPACT_STALLS, false},
    {"compact_fail", MEMORY_COMPACT_FAILED, false},
    {"compact_success", MEMORY_COMPACT_DONE, false},
    {"compact_migrate_scanned", MEMORY_COMPACT_MIGRATE_SCANNED, false},
    {"compact_free_scanned", MEMORY_COMPACT_FREE_SCANNED, false},
    {"compact_isolated", MEMORY_COMPACT_ISOLATED, false},
    {"compact_daemon_wake", MEMORY_COMPACT_DAEMON_WAKES, false},
    {"thp_fault_alloc", MEMORY_HUGE_FAULTS, false},
    {"thp_fault_fallback", MEMORY_HUGE_FAILED, false},
    {"allocstall_", MEMORY_ALLOCATION_STALLS, true},
    {"HugePages_Free", MEMORY_POOL_FREE, false},
    {"HugePages_Rsvd", MEMORY_POOL_PROMISED, false},
    {"Hugepagesize", MEMORY_POOL_PAGE_BYTES, false},
    {"CmaTotal", MEMORY_CMA_TOTAL, false},
};

static void take_line(struct memory_state *s, const char *line)
{
    uint64_t value;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const enum memory_figure f = names[i].figure;
        const char *number = line + strcspn(line, " ");
        if (!names[i].prefix) {
            if (proc_text_value(line, names[i].name, &value))
                memory_state_set(s, f, value);
        } else if (!strncmp(line, names[i].name, strlen(names[i].name)) &&
                   proc_text_number(&number, &value)) {
            const uint64_t before = memory_state_has(s, f) ? s->figures[f] : 0;
            memory_state_set(s, f, value > MEMORY_VALUE_MAX ? value : before + value);
        }
    }
}

void memory_figures_parse(struct memory_state *s, const char *meminfo, const char *vmstat)
{
    char line[PROC_TEXT_BYTES];
    while (meminfo && proc_text_next(&meminfo, line))
        take_line(s, line);
    while (vmstat && proc_text_next(&vmstat, line))
        take_line(s, line);
}

static uint64_t sum_of(const char *text, const char *const *lines, size_t n)
{
    char line[PROC_TEXT_BYTES];
    uint64_t sum = 0, value;
    while (text && proc_text_next(&text, line))
        for (size_t i = 0; i < n; i++)
            if (proc_text_value(line, lines[i], &value) && value <= MEMORY_VALUE_MAX)
                sum += value;
    return sum;
}

/* Returns the size of a page with which `bytes` are so many pages, give or take what other CPUs count meanwhile. */
static uint64_t page_size_of(uint64_t bytes, uint64_t pages)
{
    for (uint64_t size = 4096; pages && size <= 65536; size *= 2)
        if (bytes / size <= pages + pages / 4 && bytes / size >= pages - pages / 4)
            return size;
    return 0;
}

/*
 * The size of a page, also of another machine, by what one file counts in kilobytes and another one in pages. MemTotal
 * is the sum of the zones' managed pages, but not in a guest with a balloon: it takes pages of the zones alone.
 */
static uint64_t page_bytes_of(const struct memory_state *s, const char *meminfo, const char *vmstat)
{
    static const char *const in_bytes[] = {"AnonPages", "Mapped", "PageTables", "SReclaimable"},
                             *const in_pages[] = {"nr_anon_pages", "nr_mapped", "nr_page_table_pages",
                                                  "nr_slab_reclaimable"};
    const size_t n = sizeof(in_bytes) / sizeof(*in_bytes);
    const uint64_t size = page_size_of(sum_of(meminfo, in_bytes, n), sum_of(vmstat, in_pages, n));
    if (size || !memory_state_has(s, MEMORY_TOTAL))
        return size;
    uint64_t managed = 0;
    vec_each (const struct memory_zone, z, &s->zones)
        managed += memory_zone_has(z, ZONE_MANAGED) ? z->at[ZONE_MANAGED] : 0;
    return page_size_of(s->figures[MEMORY_TOTAL], managed);
}

static unsigned nodes_of(const struct memory_state *s)
{
    unsigned n = 0;
    for (size_t i = 0; i < s->zones.len; i++) {
        bool seen = false;
        for (size_t j = 0; j < i; j++)
            seen = seen || s->zones.at[j].node == s->zones.at[i].node;
        n += !seen;
    }
    return n;
}

void memory_parse(struct memory_state *s, memory_text text, void *arg, uint64_t page_bytes)
{
    *s = (struct memory_state){.page_bytes = page_bytes};
    buddyinfo_parse(s, text(arg, "/proc/buddyinfo"));
    pagetypeinfo_parse(s, text(arg, "/proc/pagetypeinfo"));
    zone_marks_parse(s, text(arg, "/proc/zoneinfo"));
    vmallocinfo_parse(s, text(arg, KERNEL_STATE_VMALLOC));
    const char *meminfo = text(arg, "/proc/meminfo"), *vmstat = text(arg, "/proc/vmstat");
    memory_figures_parse(s, meminfo, vmstat);
    const uint64_t told = page_bytes_of(s, meminfo, vmstat);
    s->page_bytes = told ? told : page_bytes;
    s->nodes = nodes_of(s);
    slab_state_parse(s, text(arg, "/proc/slabinfo"), text(arg, KERNEL_STATE_SLAB));
}
