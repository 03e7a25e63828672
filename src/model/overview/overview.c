/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/overview/overview.h"

#include <stdlib.h>

#include "base/hash_map.h"

const char *const overview_memory_names[OVERVIEW_MEMORY_KINDS] = {
    [OVERVIEW_TOTAL] = "total",
    [OVERVIEW_FREE] = "free",
    [OVERVIEW_AVAILABLE] = "available",
    [OVERVIEW_BUFFERS] = "buffers",
    [OVERVIEW_CACHED] = "cached",
    [OVERVIEW_SWAP_CACHED] = "swap_cached",
    [OVERVIEW_ACTIVE_ANON] = "active_anon",
    [OVERVIEW_INACTIVE_ANON] = "inactive_anon",
    [OVERVIEW_ACTIVE_FILE] = "active_file",
    [OVERVIEW_INACTIVE_FILE] = "inactive_file",
    [OVERVIEW_UNEVICTABLE] = "unevictable",
    [OVERVIEW_LOCKED] = "locked",
    [OVERVIEW_SWAP_TOTAL] = "swap_total",
    [OVERVIEW_SWAP_FREE] = "swap_free",
    [OVERVIEW_ZSWAP] = "zswap",
    [OVERVIEW_ZSWAPPED] = "zswapped",
    [OVERVIEW_DIRTY] = "dirty",
    [OVERVIEW_WRITEBACK] = "writeback",
    [OVERVIEW_ANON] = "anon",
    [OVERVIEW_MAPPED] = "mapped",
    [OVERVIEW_SHMEM] = "shmem",
    [OVERVIEW_KERNEL_RECLAIMABLE] = "kernel_reclaimable",
    [OVERVIEW_SLAB_RECLAIMABLE] = "slab_reclaimable",
    [OVERVIEW_SLAB_UNRECLAIMABLE] = "slab_unreclaimable",
    [OVERVIEW_KERNEL_STACKS] = "kernel_stacks",
    [OVERVIEW_PAGE_TABLES] = "page_tables",
    [OVERVIEW_SECOND_PAGE_TABLES] = "second_page_tables",
    [OVERVIEW_PER_CPU] = "per_cpu",
    [OVERVIEW_VMALLOC] = "vmalloc",
    [OVERVIEW_COMMIT_LIMIT] = "commit_limit",
    [OVERVIEW_COMMITTED] = "committed",
    [OVERVIEW_ANON_HUGE] = "anon_huge",
    [OVERVIEW_SHMEM_HUGE] = "shmem_huge",
    [OVERVIEW_FILE_HUGE] = "file_huge",
    [OVERVIEW_HUGETLB] = "hugetlb",
    [OVERVIEW_CPU_LISTS] = "cpu_lists",
    [OVERVIEW_ZSMALLOC] = "zsmalloc",
    [OVERVIEW_UNACCOUNTED] = "unaccounted",
};

const struct overview_count_name overview_count_names[OVERVIEW_COUNTS] = {
    [OVERVIEW_FAULTS] = {"faults", "page faults", false},
    [OVERVIEW_MAJOR_FAULTS] = {"major_faults", "major faults", false},
    [OVERVIEW_READ] = {"read", "read", true},
    [OVERVIEW_WRITTEN] = {"written", "written", true},
    [OVERVIEW_SWAPPED_IN] = {"swapped_in", "swapped in", true},
    [OVERVIEW_SWAPPED_OUT] = {"swapped_out", "swapped out", true},
    [OVERVIEW_ALLOCATED] = {"allocated", "pages allocated", true},
    [OVERVIEW_FREED] = {"freed", "pages freed", true},
    [OVERVIEW_SCANNED_KSWAPD] = {"scanned_kswapd", "scanned by kswapd", true},
    [OVERVIEW_SCANNED_DIRECT] = {"scanned_direct", "scanned directly", true},
    [OVERVIEW_SCANNED_CGROUP] = {"scanned_cgroup", "scanned in cgroups", true},
    [OVERVIEW_STOLEN_KSWAPD] = {"stolen_kswapd", "stolen by kswapd", true},
    [OVERVIEW_STOLEN_DIRECT] = {"stolen_direct", "stolen directly", true},
    [OVERVIEW_STOLEN_CGROUP] = {"stolen_cgroup", "stolen in cgroups", true},
    [OVERVIEW_REFAULTED_ANON] = {"refaulted_anon", "refaulted, anon", true},
    [OVERVIEW_REFAULTED_FILE] = {"refaulted_file", "refaulted, file", true},
    [OVERVIEW_KSWAPD_RUNS] = {"kswapd_runs", "kswapd woken", false},
    [OVERVIEW_DIRECT_STALLS] = {"direct_stalls", "direct reclaims", false},
    [OVERVIEW_COMPACT_STALLS] = {"compact_stalls", "direct compactions", false},
    [OVERVIEW_OOM_KILLS] = {"oom_kills", "OOM kills", false},
    [OVERVIEW_HUGE_FAULTS] = {"huge_faults", "huge page faults", false},
    [OVERVIEW_HUGE_FAILED] = {"huge_failed", "without huge page", false},
    [OVERVIEW_NODE_MOVED] = {"moved_to_node", "moved between nodes", true},
};

const char *const overview_resource_names[OVERVIEW_RESOURCES] = {
    [OVERVIEW_PSI_MEMORY] = "memory",
    [OVERVIEW_PSI_IO] = "io",
    [OVERVIEW_PSI_CPU] = "cpu",
};

void overview_release(struct overview *m)
{
    vec_each (struct overview_swap, s, &m->swaps)
        free(s->path);
    vec_each (struct overview_process, p, &m->processes)
        free(p->command);
    vec_each (struct overview_cgroup, c, &m->cgroups)
        free(c->path);
    vec_each (struct overview_kill, k, &m->kills)
        free(k->cgroup);
    free(m->faulter.cgroup);
    vec_each (char *, text, &m->unknown)
        free(*text);
    vec_each (struct overview_note, n, &m->notes)
        free(n->text);
    vec_release(&m->zones);
    vec_release(&m->swaps);
    vec_release(&m->processes);
    vec_release(&m->cgroups);
    vec_release(&m->slabs);
    vec_release(&m->nodes);
    vec_release(&m->huge);
    vec_release(&m->kills);
    vec_release(&m->unknown);
    vec_release(&m->notes);
}

void overview_memory_set(struct overview *m, enum overview_memory kind, uint64_t bytes)
{
    m->memory[kind] = bytes;
    m->memory_known |= UINT64_C(1) << kind;
}

void overview_count_set(struct overview_counts *c, enum overview_count count, uint64_t value)
{
    c->at[count] = value;
    c->known |= UINT64_C(1) << count;
}

/*
 * Adds up the kernel's page lists (active, inactive, unevictable), because each page of anonymous memory, files, shared
 * memory and the swap cache is on one of them once; the figures of these kinds count some pages twice. Kernel stacks
 * are not added: all x86-64 kernels of distributions allocate them by vmalloc (CONFIG_VMAP_STACK).
 */
void overview_account(struct overview *m)
{
    static const enum overview_memory kinds[] = {
        OVERVIEW_FREE,
        OVERVIEW_CPU_LISTS,
        OVERVIEW_ACTIVE_ANON,
        OVERVIEW_INACTIVE_ANON,
        OVERVIEW_ACTIVE_FILE,
        OVERVIEW_INACTIVE_FILE,
        OVERVIEW_UNEVICTABLE,
        OVERVIEW_KERNEL_RECLAIMABLE,
        OVERVIEW_PAGE_TABLES,
        OVERVIEW_SLAB_UNRECLAIMABLE,
        OVERVIEW_SECOND_PAGE_TABLES,
        OVERVIEW_PER_CPU,
        OVERVIEW_VMALLOC,
        OVERVIEW_HUGETLB,
        OVERVIEW_ZSMALLOC,
    };
    uint64_t total = overview_memory_of(m, OVERVIEW_TOTAL), sum = 0;
    uint64_t lists = 0;
    vec_each (const struct overview_zone, z, &m->zones)
        lists += z->cpu_lists_bytes;
    if (m->zones.len)
        overview_memory_set(m, OVERVIEW_CPU_LISTS, lists);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        sum += overview_memory_of(m, kinds[i]);
    if (overview_memory_has(m, OVERVIEW_TOTAL) && overview_memory_has(m, OVERVIEW_INACTIVE_FILE))
        overview_memory_set(m, OVERVIEW_UNACCOUNTED, total > sum ? total - sum : 0);
}

static void note_faulter(struct overview_faulter *most, const struct overview_process *p, double major_per_s)
{
    if (major_per_s <= most->major_per_s)
        return;
    most->pid = p->pid;
    most->major_per_s = major_per_s;
    memcpy(most->name, p->name, sizeof(most->name));
}

static void process_rates(struct overview *now, const struct overview *before, double seconds)
{
    struct map by_pid = {0};
    for (size_t i = 0; i < before->processes.len; i++)
        map_put_u64(&by_pid, (uint64_t)before->processes.at[i].pid, i, NULL);
    vec_each (struct overview_process, p, &now->processes) {
        size_t found = map_get_u64(&by_pid, (uint64_t)p->pid);
        const struct overview_process *was = found == MAP_NONE ? NULL : &before->processes.at[found];
        uint64_t faults = p->minor + p->major;
        if (!was || was->start_ticks != p->start_ticks || faults < was->minor + was->major)
            continue;
        p->faults_per_s = (double)(faults - was->minor - was->major) / seconds;
        if (p->major > was->major)
            note_faulter(&now->faulter, p, (double)(p->major - was->major) / seconds);
    }
    map_release(&by_pid);
}

static void stall_since(struct overview_stall *now, const struct overview_stall *before, double seconds)
{
    if (now->known && before->known && now->total_us >= before->total_us)
        now->last = (double)(now->total_us - before->total_us) / seconds / 1e4;
}

void overview_since(struct overview *now, const struct overview *before)
{
    now->interval_ns = before && now->boot_ns > before->boot_ns ? now->boot_ns - before->boot_ns : 0;
    double seconds = (double)now->interval_ns / 1e9;
    for (int i = 0; i < OVERVIEW_COUNTS; i++)
        now->rate[i] = -1;
    for (int i = 0; i < OVERVIEW_RESOURCES; i++)
        now->pressure[i].some.last = now->pressure[i].full.last = -1;
    vec_each (struct overview_process, p, &now->processes)
        p->faults_per_s = -1;
    if (!now->interval_ns)
        return;
    uint64_t known = now->counts.known & before->counts.known;
    for (int i = 0; i < OVERVIEW_COUNTS; i++)
        if ((known >> i & 1) && now->counts.at[i] >= before->counts.at[i])
            now->rate[i] = (double)(now->counts.at[i] - before->counts.at[i]) / seconds;
    for (int i = 0; i < OVERVIEW_RESOURCES; i++) {
        stall_since(&now->pressure[i].some, &before->pressure[i].some, seconds);
        stall_since(&now->pressure[i].full, &before->pressure[i].full, seconds);
    }
    process_rates(now, before, seconds);
}

static double sort_key(const struct overview_process *p, enum overview_sort by)
{
    switch (by) {
    case OVERVIEW_BY_MEMORY:
        return (double)(overview_process_rss(p) + p->swap_bytes);
    case OVERVIEW_BY_RSS:
        return (double)overview_process_rss(p);
    case OVERVIEW_BY_SWAP:
        return (double)p->swap_bytes;
    case OVERVIEW_BY_ANON:
        return (double)p->anon_bytes;
    case OVERVIEW_BY_FILE:
        return (double)p->file_bytes;
    case OVERVIEW_BY_SHMEM:
        return (double)p->shmem_bytes;
    case OVERVIEW_BY_FAULTS:
        return p->faults_per_s >= 0 ? p->faults_per_s : (double)(p->minor + p->major) * 1e-12;
    }
    return 0;
}

static int compare_processes(const void *left, const void *right, void *by)
{
    const struct overview_process *a = left, *b = right;
    double one = sort_key(a, *(enum overview_sort *)by), other = sort_key(b, *(enum overview_sort *)by);
    if (one != other)
        return one < other ? 1 : -1;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

void overview_sort_processes(struct overview_processes *p, enum overview_sort by, uint32_t top)
{
    if (p->len)
        qsort_r(p->at, p->len, sizeof(*p->at), compare_processes, &by);
    while (top && p->len > top)
        free(p->at[--p->len].command);
}
