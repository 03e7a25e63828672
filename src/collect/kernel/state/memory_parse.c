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

/* MemTotal is the sum of the zones' managed pages, so it tells the size of a page, also of another machine. */
static uint64_t page_bytes_of(const struct memory_state *s)
{
    uint64_t pages = 0;
    vec_each (const struct memory_zone, z, &s->zones)
        pages += memory_zone_has(z, ZONE_MANAGED) ? z->at[ZONE_MANAGED] : 0;
    if (!pages || !memory_state_has(s, MEMORY_TOTAL))
        return 0;
    for (uint64_t bytes = 4096; bytes <= 65536; bytes *= 2)
        if (s->figures[MEMORY_TOTAL] / bytes <= pages + pages / 64 &&
            s->figures[MEMORY_TOTAL] / bytes >= pages - pages / 64)
            return bytes;
    return 0;
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
    memory_figures_parse(s, text(arg, "/proc/meminfo"), text(arg, "/proc/vmstat"));
    s->page_bytes = page_bytes_of(s) ? page_bytes_of(s) : page_bytes;
    s->nodes = nodes_of(s);
    slab_state_parse(s, text(arg, "/proc/slabinfo"), text(arg, KERNEL_STATE_SLAB));
}
