/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/overview/overview.h"

#include <stdlib.h>

#include "base/hash_map.h"

const char *const machine_memory_names[MACHINE_MEMORY_KINDS] = {
    [MACHINE_TOTAL] = "total",
    [MACHINE_FREE] = "free",
    [MACHINE_AVAILABLE] = "available",
    [MACHINE_BUFFERS] = "buffers",
    [MACHINE_CACHED] = "cached",
    [MACHINE_SWAP_CACHED] = "swap_cached",
    [MACHINE_ACTIVE_ANON] = "active_anon",
    [MACHINE_INACTIVE_ANON] = "inactive_anon",
    [MACHINE_ACTIVE_FILE] = "active_file",
    [MACHINE_INACTIVE_FILE] = "inactive_file",
    [MACHINE_UNEVICTABLE] = "unevictable",
    [MACHINE_LOCKED] = "locked",
    [MACHINE_SWAP_TOTAL] = "swap_total",
    [MACHINE_SWAP_FREE] = "swap_free",
    [MACHINE_ZSWAP] = "zswap",
    [MACHINE_ZSWAPPED] = "zswapped",
    [MACHINE_DIRTY] = "dirty",
    [MACHINE_WRITEBACK] = "writeback",
    [MACHINE_ANON] = "anon",
    [MACHINE_MAPPED] = "mapped",
    [MACHINE_SHMEM] = "shmem",
    [MACHINE_KERNEL_RECLAIMABLE] = "kernel_reclaimable",
    [MACHINE_SLAB_RECLAIMABLE] = "slab_reclaimable",
    [MACHINE_SLAB_UNRECLAIMABLE] = "slab_unreclaimable",
    [MACHINE_KERNEL_STACKS] = "kernel_stacks",
    [MACHINE_PAGE_TABLES] = "page_tables",
    [MACHINE_SECOND_PAGE_TABLES] = "second_page_tables",
    [MACHINE_PER_CPU] = "per_cpu",
    [MACHINE_VMALLOC] = "vmalloc",
    [MACHINE_COMMIT_LIMIT] = "commit_limit",
    [MACHINE_COMMITTED] = "committed",
    [MACHINE_ANON_HUGE] = "anon_huge",
    [MACHINE_SHMEM_HUGE] = "shmem_huge",
    [MACHINE_FILE_HUGE] = "file_huge",
    [MACHINE_HUGETLB] = "hugetlb",
    [MACHINE_CPU_LISTS] = "cpu_lists",
    [MACHINE_ZSMALLOC] = "zsmalloc",
    [MACHINE_UNACCOUNTED] = "unaccounted",
};

const struct machine_count_name machine_count_names[MACHINE_COUNTS] = {
    [MACHINE_FAULTS] = {"faults", "page faults", false},
    [MACHINE_MAJOR_FAULTS] = {"major_faults", "major faults", false},
    [MACHINE_READ] = {"read", "read", true},
    [MACHINE_WRITTEN] = {"written", "written", true},
    [MACHINE_SWAPPED_IN] = {"swapped_in", "swapped in", true},
    [MACHINE_SWAPPED_OUT] = {"swapped_out", "swapped out", true},
    [MACHINE_ALLOCATED] = {"allocated", "pages allocated", true},
    [MACHINE_FREED] = {"freed", "pages freed", true},
    [MACHINE_SCANNED_KSWAPD] = {"scanned_kswapd", "scanned by kswapd", true},
    [MACHINE_SCANNED_DIRECT] = {"scanned_direct", "scanned directly", true},
    [MACHINE_SCANNED_CGROUP] = {"scanned_cgroup", "scanned in cgroups", true},
    [MACHINE_STOLEN_KSWAPD] = {"stolen_kswapd", "stolen by kswapd", true},
    [MACHINE_STOLEN_DIRECT] = {"stolen_direct", "stolen directly", true},
    [MACHINE_STOLEN_CGROUP] = {"stolen_cgroup", "stolen in cgroups", true},
    [MACHINE_REFAULTED_ANON] = {"refaulted_anon", "refaulted, anon", true},
    [MACHINE_REFAULTED_FILE] = {"refaulted_file", "refaulted, file", true},
    [MACHINE_KSWAPD_RUNS] = {"kswapd_runs", "kswapd woken", false},
    [MACHINE_DIRECT_STALLS] = {"direct_stalls", "direct reclaims", false},
    [MACHINE_COMPACT_STALLS] = {"compact_stalls", "direct compactions", false},
    [MACHINE_OOM_KILLS] = {"oom_kills", "OOM kills", false},
    [MACHINE_HUGE_FAULTS] = {"huge_faults", "huge page faults", false},
    [MACHINE_HUGE_FAILED] = {"huge_failed", "without huge page", false},
};

const char *const machine_resource_names[MACHINE_RESOURCES] = {
    [MACHINE_PSI_MEMORY] = "memory",
    [MACHINE_PSI_IO] = "io",
    [MACHINE_PSI_CPU] = "cpu",
};

void machine_release(struct machine *m)
{
    vec_each (struct machine_swap, s, &m->swaps)
        free(s->path);
    vec_each (struct machine_process, p, &m->processes)
        free(p->command);
    vec_each (struct machine_cgroup, c, &m->cgroups)
        free(c->path);
    vec_each (struct machine_kill, k, &m->kills)
        free(k->cgroup);
    vec_each (char *, text, &m->unknown)
        free(*text);
    vec_each (struct machine_note, n, &m->notes)
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

void machine_memory_set(struct machine *m, enum machine_memory kind, uint64_t bytes)
{
    m->memory[kind] = bytes;
    m->memory_known |= UINT64_C(1) << kind;
}

void machine_count_set(struct machine_counts *c, enum machine_count count, uint64_t value)
{
    c->at[count] = value;
    c->known |= UINT64_C(1) << count;
}

/*
 * The lists of pages that can be reclaimed hold anonymous memory, files, shared memory and the swap cache, each once;
 * sums of those kinds count some twice. Kernel stacks are in vmalloc, and not added again, as all x86-64 kernels of
 * distributions make them so (CONFIG_VMAP_STACK).
 */
void machine_account(struct machine *m)
{
    static const enum machine_memory kinds[] = {
        MACHINE_FREE,
        MACHINE_CPU_LISTS,
        MACHINE_ACTIVE_ANON,
        MACHINE_INACTIVE_ANON,
        MACHINE_ACTIVE_FILE,
        MACHINE_INACTIVE_FILE,
        MACHINE_UNEVICTABLE,
        MACHINE_KERNEL_RECLAIMABLE,
        MACHINE_PAGE_TABLES,
        MACHINE_SLAB_UNRECLAIMABLE,
        MACHINE_SECOND_PAGE_TABLES,
        MACHINE_PER_CPU,
        MACHINE_VMALLOC,
        MACHINE_HUGETLB,
        MACHINE_ZSMALLOC,
    };
    uint64_t total = machine_memory_of(m, MACHINE_TOTAL), sum = 0;
    uint64_t lists = 0;
    vec_each (const struct machine_zone, z, &m->zones)
        lists += z->cpu_lists_bytes;
    if (m->zones.len)
        machine_memory_set(m, MACHINE_CPU_LISTS, lists);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        sum += machine_memory_of(m, kinds[i]);
    if (machine_memory_has(m, MACHINE_TOTAL) && machine_memory_has(m, MACHINE_INACTIVE_FILE))
        machine_memory_set(m, MACHINE_UNACCOUNTED, total > sum ? total - sum : 0);
}

static void process_rates(struct machine *now, const struct machine *before, double seconds)
{
    struct map by_pid = {0};
    for (size_t i = 0; i < before->processes.len; i++)
        map_put_u64(&by_pid, (uint64_t)before->processes.at[i].pid, i, NULL);
    vec_each (struct machine_process, p, &now->processes) {
        size_t found = map_get_u64(&by_pid, (uint64_t)p->pid);
        const struct machine_process *was = found == MAP_NONE ? NULL : &before->processes.at[found];
        uint64_t faults = p->minor + p->major;
        if (was && was->start_ticks == p->start_ticks && faults >= was->minor + was->major)
            p->faults_per_s = (double)(faults - was->minor - was->major) / seconds;
    }
    map_release(&by_pid);
}

static void stall_since(struct machine_stall *now, const struct machine_stall *before, double seconds)
{
    if (now->known && before->known && now->total_us >= before->total_us)
        now->last = (double)(now->total_us - before->total_us) / seconds / 1e4;
}

void machine_since(struct machine *now, const struct machine *before)
{
    now->interval_ns = before && now->boot_ns > before->boot_ns ? now->boot_ns - before->boot_ns : 0;
    double seconds = (double)now->interval_ns / 1e9;
    for (int i = 0; i < MACHINE_COUNTS; i++)
        now->rate[i] = -1;
    for (int i = 0; i < MACHINE_RESOURCES; i++)
        now->pressure[i].some.last = now->pressure[i].full.last = -1;
    vec_each (struct machine_process, p, &now->processes)
        p->faults_per_s = -1;
    if (!now->interval_ns)
        return;
    uint64_t known = now->counts.known & before->counts.known;
    for (int i = 0; i < MACHINE_COUNTS; i++)
        if ((known >> i & 1) && now->counts.at[i] >= before->counts.at[i])
            now->rate[i] = (double)(now->counts.at[i] - before->counts.at[i]) / seconds;
    for (int i = 0; i < MACHINE_RESOURCES; i++) {
        stall_since(&now->pressure[i].some, &before->pressure[i].some, seconds);
        stall_since(&now->pressure[i].full, &before->pressure[i].full, seconds);
    }
    process_rates(now, before, seconds);
}

static double sort_key(const struct machine_process *p, enum machine_sort by)
{
    switch (by) {
    case MACHINE_BY_MEMORY:
        return (double)(machine_process_rss(p) + p->swap_bytes);
    case MACHINE_BY_RSS:
        return (double)machine_process_rss(p);
    case MACHINE_BY_SWAP:
        return (double)p->swap_bytes;
    case MACHINE_BY_ANON:
        return (double)p->anon_bytes;
    case MACHINE_BY_FILE:
        return (double)p->file_bytes;
    case MACHINE_BY_SHMEM:
        return (double)p->shmem_bytes;
    case MACHINE_BY_FAULTS:
        return p->faults_per_s >= 0 ? p->faults_per_s : (double)(p->minor + p->major) * 1e-12;
    }
    return 0;
}

static int compare_processes(const void *left, const void *right, void *by)
{
    const struct machine_process *a = left, *b = right;
    double one = sort_key(a, *(enum machine_sort *)by), other = sort_key(b, *(enum machine_sort *)by);
    if (one != other)
        return one < other ? 1 : -1;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

void machine_sort_processes(struct machine_processes *p, enum machine_sort by, uint32_t top)
{
    if (p->len)
        qsort_r(p->at, p->len, sizeof(*p->at), compare_processes, &by);
    while (top && p->len > top)
        free(p->at[--p->len].command);
}
