/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses /proc/vmstat and /proc/zoneinfo. Their names change: newer kernels count the scans of khugepaged and of
 * memory.reclaim separately (pgscan_khugepaged, pgscan_proactive), older ones count them as direct. Reclaim for the
 * limit of a cgroup has no counter: it is the sum of pgscan_anon and pgscan_file without all scans for the machine.
 */
#include "collect/kernel/meminfo.h"

#include <string.h>

#include "collect/kernel/proc_text.h"

enum unit { EVENTS, PAGES, KIB };

/* All lines with the same count are added up. If `prefix` is set, all names that begin with `name` are meant: one for
 * each zone. */
static const struct {
    const char *name;
    enum overview_count count;
    enum unit unit;
    bool prefix;
} names[] = {
    {"pgfault", OVERVIEW_FAULTS, EVENTS, false},
    {"pgmajfault", OVERVIEW_MAJOR_FAULTS, EVENTS, false},
    {"pgpgin", OVERVIEW_READ, KIB, false},
    {"pgpgout", OVERVIEW_WRITTEN, KIB, false},
    {"pswpin", OVERVIEW_SWAPPED_IN, PAGES, false},
    {"pswpout", OVERVIEW_SWAPPED_OUT, PAGES, false},
    {"swpin_zero", OVERVIEW_SWAPPED_IN, PAGES,
     false}, /* pages of zeros: the swap device does not store them */
    {"swpout_zero", OVERVIEW_SWAPPED_OUT, PAGES, false},
    {"pgalloc_", OVERVIEW_ALLOCATED, PAGES, true},
    {"pgfree", OVERVIEW_FREED, PAGES, false},
    {"pgscan_kswapd", OVERVIEW_SCANNED_KSWAPD, PAGES, false},
    {"pgscan_direct", OVERVIEW_SCANNED_DIRECT, PAGES, false},
    {"pgscan_khugepaged", OVERVIEW_SCANNED_DIRECT, PAGES, false},
    {"pgscan_proactive", OVERVIEW_SCANNED_DIRECT, PAGES, false},
    {"pgscan_anon", OVERVIEW_SCANNED_CGROUP, PAGES, false},
    {"pgscan_file", OVERVIEW_SCANNED_CGROUP, PAGES, false},
    {"pgsteal_kswapd", OVERVIEW_STOLEN_KSWAPD, PAGES, false},
    {"pgsteal_direct", OVERVIEW_STOLEN_DIRECT, PAGES, false},
    {"pgsteal_khugepaged", OVERVIEW_STOLEN_DIRECT, PAGES, false},
    {"pgsteal_proactive", OVERVIEW_STOLEN_DIRECT, PAGES, false},
    {"pgsteal_anon", OVERVIEW_STOLEN_CGROUP, PAGES, false},
    {"pgsteal_file", OVERVIEW_STOLEN_CGROUP, PAGES, false},
    {"workingset_refault_anon", OVERVIEW_REFAULTED_ANON, PAGES, false},
    {"workingset_refault_file", OVERVIEW_REFAULTED_FILE, PAGES, false},
    {"pageoutrun", OVERVIEW_KSWAPD_RUNS, EVENTS, false},
    {"allocstall_", OVERVIEW_DIRECT_STALLS, EVENTS, true},
    {"compact_stall", OVERVIEW_COMPACT_STALLS, EVENTS, false},
    {"oom_kill", OVERVIEW_OOM_KILLS, EVENTS, false},
    {"thp_fault_alloc", OVERVIEW_HUGE_FAULTS, EVENTS, false},
    {"thp_fault_fallback", OVERVIEW_HUGE_FAILED, EVENTS, false},
    {"numa_pages_migrated", OVERVIEW_NODE_MOVED, PAGES, false},
};

static uint64_t scaled(uint64_t value, enum unit unit, uint64_t page_bytes)
{
    return unit == PAGES ? proc_text_times(value, page_bytes)
           : unit == KIB ? proc_text_times(value, 1024)
                         : value;
}

/* Subtracts the scans for the machine from all scans, which leaves the scans for the limits of cgroups. */
static void leave_cgroups(struct overview_counts *c, enum overview_count all, enum overview_count kswapd,
                          enum overview_count direct)
{
    uint64_t machine = c->at[kswapd] + c->at[direct];
    if (overview_count_has(c, all))
        c->at[all] = c->at[all] > machine ? c->at[all] - machine : 0;
}

void vmstat_parse(struct overview *m, const char *text, uint64_t page_bytes)
{
    char line[PROC_TEXT_BYTES], name[64];
    uint64_t value;
    while (proc_text_next(&text, line)) {
        const char *at = line;
        if (!proc_text_word(&at, name, sizeof(name)) || !proc_text_number(&at, &value))
            continue;
        if (!strcmp(name, "nr_zspages"))
            overview_memory_set(m, OVERVIEW_ZSMALLOC, proc_text_times(value, page_bytes));
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
            if (names[i].prefix ? !strncmp(name, names[i].name, strlen(names[i].name))
                                : !strcmp(name, names[i].name))
                overview_count_set(&m->counts, names[i].count,
                                   m->counts.at[names[i].count] + scaled(value, names[i].unit, page_bytes));
    }
    leave_cgroups(&m->counts, OVERVIEW_SCANNED_CGROUP, OVERVIEW_SCANNED_KSWAPD, OVERVIEW_SCANNED_DIRECT);
    leave_cgroups(&m->counts, OVERVIEW_STOLEN_CGROUP, OVERVIEW_STOLEN_KSWAPD, OVERVIEW_STOLEN_DIRECT);
}

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

/* Parses the first line of a zone, "Node 0, zone   Normal". Returns false for another line. */
static bool begins_zone(const char *line, struct overview_zone *z)
{
    uint64_t node;
    if (strncmp(line, "Node ", 5))
        return false;
    const char *at = line + 5;
    if (!proc_text_number(&at, &node) || node > 1u << 16 || strncmp(at, ", zone", 6))
        return false;
    at += 6;
    *z = (struct overview_zone){.node = (unsigned)node};
    return proc_text_word(&at, z->name, sizeof(z->name));
}

static void take_zone_line(struct overview_zone *z, const char *at, uint64_t page_bytes)
{
    static const char free_pages[] = "pages free";
    uint64_t value, *to = NULL;
    const char *number = at;
    char name[32];
    if (!strncmp(at, free_pages, strlen(free_pages))) {
        to = &z->free_bytes;
        number = at + strlen(free_pages);
    } else if (proc_text_word(&number, name, sizeof(name))) {
        to = !strcmp(name, "min")       ? &z->min_bytes
             : !strcmp(name, "low")     ? &z->low_bytes
             : !strcmp(name, "high")    ? &z->high_bytes
             : !strcmp(name, "managed") ? &z->managed_bytes
             : !strcmp(name, "count:")  ? &z->cpu_lists_bytes
                                        : NULL;
    }
    if (to && proc_text_number(&number, &value)) {
        value = proc_text_times(value, page_bytes);
        *to = to == &z->cpu_lists_bytes ? *to + value : value;
    }
}

void zoneinfo_parse(struct overview *m, const char *text, uint64_t page_bytes)
{
    char line[PROC_TEXT_BYTES];
    struct overview_zone z = {.node = 0};
    bool open = false;
    while (proc_text_next(&text, line)) {
        struct overview_zone next;
        if (!begins_zone(line, &next)) {
            if (open)
                take_zone_line(&z, skip_blanks(line), page_bytes);
            continue;
        }
        if (open && z.managed_bytes)
            *vec_push(&m->zones) = z;
        z = next;
        open = true;
    }
    if (open && z.managed_bytes)
        *vec_push(&m->zones) = z;
}
