/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /proc/vmstat and /proc/zoneinfo. Their names come and go: khugepaged, and what is asked for through memory.reclaim,
 * have scans of their own in newer kernels; before, they were in the direct ones. Reclaim for the limit of a cgroup is in no
 * counter of its own: it is what pgscan_anon and pgscan_file have beyond those of the machine's.
 */
#include "collect/kernel/meminfo.h"

#include <string.h>

#include "collect/kernel/proc_text.h"

enum unit { EVENTS, PAGES, KIB };

/* Each line that begins so is added: several zones, several kinds. */
static const struct {
    const char *name;
    enum machine_count count;
    enum unit unit;
    bool prefix;
} names[] = {
    {"pgfault", MACHINE_FAULTS, EVENTS, false},
    {"pgmajfault", MACHINE_MAJOR_FAULTS, EVENTS, false},
    {"pgpgin", MACHINE_READ, KIB, false},
    {"pgpgout", MACHINE_WRITTEN, KIB, false},
    {"pswpin", MACHINE_SWAPPED_IN, PAGES, false},
    {"pswpout", MACHINE_SWAPPED_OUT, PAGES, false},
    {"pgalloc_", MACHINE_ALLOCATED, PAGES, true},
    {"pgfree", MACHINE_FREED, PAGES, false},
    {"pgscan_kswapd", MACHINE_SCANNED_KSWAPD, PAGES, false},
    {"pgscan_direct", MACHINE_SCANNED_DIRECT, PAGES, false},
    {"pgscan_khugepaged", MACHINE_SCANNED_DIRECT, PAGES, false},
    {"pgscan_proactive", MACHINE_SCANNED_DIRECT, PAGES, false},
    {"pgscan_anon", MACHINE_SCANNED_CGROUP, PAGES, false},
    {"pgscan_file", MACHINE_SCANNED_CGROUP, PAGES, false},
    {"pgsteal_kswapd", MACHINE_STOLEN_KSWAPD, PAGES, false},
    {"pgsteal_direct", MACHINE_STOLEN_DIRECT, PAGES, false},
    {"pgsteal_khugepaged", MACHINE_STOLEN_DIRECT, PAGES, false},
    {"pgsteal_proactive", MACHINE_STOLEN_DIRECT, PAGES, false},
    {"pgsteal_anon", MACHINE_STOLEN_CGROUP, PAGES, false},
    {"pgsteal_file", MACHINE_STOLEN_CGROUP, PAGES, false},
    {"workingset_refault_anon", MACHINE_REFAULTED_ANON, PAGES, false},
    {"workingset_refault_file", MACHINE_REFAULTED_FILE, PAGES, false},
    {"pageoutrun", MACHINE_KSWAPD_RUNS, EVENTS, false},
    {"allocstall_", MACHINE_DIRECT_STALLS, EVENTS, true},
    {"compact_stall", MACHINE_COMPACT_STALLS, EVENTS, false},
    {"oom_kill", MACHINE_OOM_KILLS, EVENTS, false},
    {"thp_fault_alloc", MACHINE_HUGE_FAULTS, EVENTS, false},
    {"thp_fault_fallback", MACHINE_HUGE_FAILED, EVENTS, false},
};

static uint64_t scaled(uint64_t value, enum unit unit, uint64_t page_bytes)
{
    return unit == PAGES ? lines_times(value, page_bytes) : unit == KIB ? lines_times(value, 1024) : value;
}

/* What is beyond the machine's own scans. */
static void leave_cgroups(struct machine_counts *c, enum machine_count all, enum machine_count kswapd,
                          enum machine_count direct)
{
    uint64_t machine = c->at[kswapd] + c->at[direct];
    if (machine_count_has(c, all))
        c->at[all] = c->at[all] > machine ? c->at[all] - machine : 0;
}

void vmstat_parse(struct machine *m, const char *text, uint64_t page_bytes)
{
    char line[LINES_BYTES], name[64];
    uint64_t value;
    while (lines_next(&text, line)) {
        const char *at = line;
        if (!lines_word(&at, name, sizeof(name)) || !lines_number(&at, &value))
            continue;
        if (!strcmp(name, "nr_zspages"))
            machine_memory_set(m, MACHINE_ZSMALLOC, lines_times(value, page_bytes));
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
            if (names[i].prefix ? !strncmp(name, names[i].name, strlen(names[i].name))
                                : !strcmp(name, names[i].name))
                machine_count_set(&m->counts, names[i].count,
                                  m->counts.at[names[i].count] + scaled(value, names[i].unit, page_bytes));
    }
    leave_cgroups(&m->counts, MACHINE_SCANNED_CGROUP, MACHINE_SCANNED_KSWAPD, MACHINE_SCANNED_DIRECT);
    leave_cgroups(&m->counts, MACHINE_STOLEN_CGROUP, MACHINE_STOLEN_KSWAPD, MACHINE_STOLEN_DIRECT);
}

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

/* "Node 0, zone   Normal" */
static bool begins_zone(const char *line, struct machine_zone *z)
{
    uint64_t node;
    if (strncmp(line, "Node ", 5))
        return false;
    const char *at = line + 5;
    if (!lines_number(&at, &node) || node > 1u << 16 || strncmp(at, ", zone", 6))
        return false;
    at += 6;
    *z = (struct machine_zone){.node = (unsigned)node};
    return lines_word(&at, z->name, sizeof(z->name));
}

static void take_zone_line(struct machine_zone *z, const char *at, uint64_t page_bytes)
{
    static const char free_pages[] = "pages free";
    uint64_t value, *to = NULL;
    const char *number = at;
    char name[32];
    if (!strncmp(at, free_pages, strlen(free_pages))) {
        to = &z->free_bytes;
        number = at + strlen(free_pages);
    } else if (lines_word(&number, name, sizeof(name))) {
        to = !strcmp(name, "min")       ? &z->min_bytes
             : !strcmp(name, "low")     ? &z->low_bytes
             : !strcmp(name, "high")    ? &z->high_bytes
             : !strcmp(name, "managed") ? &z->managed_bytes
             : !strcmp(name, "count:")  ? &z->cpu_lists_bytes
                                        : NULL;
    }
    if (to && lines_number(&number, &value)) {
        value = lines_times(value, page_bytes);
        *to = to == &z->cpu_lists_bytes ? *to + value : value;
    }
}

void zoneinfo_parse(struct machine *m, const char *text, uint64_t page_bytes)
{
    char line[LINES_BYTES];
    struct machine_zone z = {.node = 0};
    bool open = false;
    while (lines_next(&text, line)) {
        struct machine_zone next;
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
