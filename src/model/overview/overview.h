/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_OVERVIEW_H
#define MODEL_OVERVIEW_H

/*
 * The memory of a machine at one moment: the data that `allium sys` shows. Reader and view meet only here.
 * Sizes are in bytes; values that the kernel counts in pages or KiB are converted.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its lists and their texts, until overview_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/** Kinds of memory, in bytes. They overlap, as the lines of /proc/meminfo do. */
enum overview_memory {
    OVERVIEW_TOTAL,
    OVERVIEW_FREE,
    OVERVIEW_AVAILABLE,
    OVERVIEW_BUFFERS,
    OVERVIEW_CACHED,
    OVERVIEW_SWAP_CACHED,
    OVERVIEW_ACTIVE_ANON,
    OVERVIEW_INACTIVE_ANON,
    OVERVIEW_ACTIVE_FILE,
    OVERVIEW_INACTIVE_FILE,
    OVERVIEW_UNEVICTABLE,
    OVERVIEW_LOCKED,
    OVERVIEW_SWAP_TOTAL,
    OVERVIEW_SWAP_FREE,
    OVERVIEW_ZSWAP,    /* memory that the compressed pages of zswap take */
    OVERVIEW_ZSWAPPED, /* size of these pages uncompressed */
    OVERVIEW_DIRTY,
    OVERVIEW_WRITEBACK,
    OVERVIEW_ANON,
    OVERVIEW_MAPPED,
    OVERVIEW_SHMEM,
    OVERVIEW_KERNEL_RECLAIMABLE, /* slab and others */
    OVERVIEW_SLAB_RECLAIMABLE,
    OVERVIEW_SLAB_UNRECLAIMABLE,
    OVERVIEW_KERNEL_STACKS,
    OVERVIEW_PAGE_TABLES,
    OVERVIEW_SECOND_PAGE_TABLES, /* of virtual machines and the IOMMU */
    OVERVIEW_PER_CPU,
    OVERVIEW_VMALLOC, /* includes kernel stacks if the kernel takes them from vmalloc */
    OVERVIEW_COMMIT_LIMIT,
    OVERVIEW_COMMITTED,
    OVERVIEW_ANON_HUGE,
    OVERVIEW_SHMEM_HUGE,
    OVERVIEW_FILE_HUGE,
    OVERVIEW_HUGETLB,
    OVERVIEW_CPU_LISTS,   /* free pages in the per-CPU lists, which OVERVIEW_FREE does not count */
    OVERVIEW_ZSMALLOC,    /* memory of zram and zswap */
    OVERVIEW_UNACCOUNTED, /* in none of the kinds above: drivers, vmemmap, leaks of the kernel */
    OVERVIEW_MEMORY_KINDS,
};
_Static_assert(OVERVIEW_MEMORY_KINDS <= 64, "one bit for each kind");
/** The JSON keys, without the unit. */
extern const char *const overview_memory_names[OVERVIEW_MEMORY_KINDS];

/** Counters since boot. */
enum overview_count {
    OVERVIEW_FAULTS, /* minor and major */
    OVERVIEW_MAJOR_FAULTS,
    OVERVIEW_READ,           /* bytes from block devices, swap included */
    OVERVIEW_WRITTEN,        /* bytes */
    OVERVIEW_SWAPPED_IN,     /* bytes */
    OVERVIEW_SWAPPED_OUT,    /* bytes */
    OVERVIEW_ALLOCATED,      /* bytes of pages */
    OVERVIEW_FREED,          /* bytes */
    OVERVIEW_SCANNED_KSWAPD, /* bytes examined for reclaim */
    OVERVIEW_SCANNED_DIRECT,
    OVERVIEW_SCANNED_CGROUP, /* for the limit of a memory cgroup */
    OVERVIEW_STOLEN_KSWAPD,  /* bytes reclaimed */
    OVERVIEW_STOLEN_DIRECT,
    OVERVIEW_STOLEN_CGROUP,
    OVERVIEW_REFAULTED_ANON, /* bytes that were reclaimed and soon needed again */
    OVERVIEW_REFAULTED_FILE,
    OVERVIEW_KSWAPD_RUNS,
    OVERVIEW_DIRECT_STALLS,  /* allocations that had to reclaim memory themselves */
    OVERVIEW_COMPACT_STALLS, /* allocations that had to compact memory themselves */
    OVERVIEW_OOM_KILLS,
    OVERVIEW_HUGE_FAULTS, /* faults that got a huge page */
    OVERVIEW_HUGE_FAILED, /* faults that wanted a huge page and got small ones */
    OVERVIEW_NODE_MOVED,  /* bytes, to the NUMA node of the task that uses them */
    OVERVIEW_COUNTS,
};
struct overview_count_name {
    const char *key;   /* JSON key without unit */
    const char *label; /* heading for people */
    bool bytes;
};
extern const struct overview_count_name overview_count_names[OVERVIEW_COUNTS];

struct overview_counts {
    uint64_t at[OVERVIEW_COUNTS];
    uint64_t known; /* bits by enum overview_count */
};

struct overview_zone {
    unsigned node;
    char name[16];
    uint64_t free_bytes, min_bytes, low_bytes, high_bytes, managed_bytes;
    uint64_t cpu_lists_bytes; /* free, in the per-CPU lists */
};

struct overview_swap {
    char *path;
    char type[16];
    uint64_t size_bytes, used_bytes;
    int64_t priority;
    uint64_t memory_bytes; /* for zram: the memory that it takes; 0: not known */
};

enum overview_resource { OVERVIEW_PSI_MEMORY, OVERVIEW_PSI_IO, OVERVIEW_PSI_CPU, OVERVIEW_RESOURCES };
extern const char *const overview_resource_names[OVERVIEW_RESOURCES];

/** Share of time in which some task, or all tasks that were not idle, waited. */
struct overview_stall {
    bool known;
    double avg10, avg60, avg300; /* percent */
    uint64_t total_us;
    double last; /* percent of the interval, computed by overview_since(); < 0: not known */
};
struct overview_pressure {
    struct overview_stall some, full;
};

/** The result of reading those values of a process that need its memory lock. */
enum overview_query_result { OVERVIEW_NOT_QUERIED, OVERVIEW_ANSWERED, OVERVIEW_MUTE, OVERVIEW_REFUSED };

struct overview_process {
    int pid, parent;
    unsigned uid, threads;
    char state;
    bool kernel;
    char name[64];
    uint64_t anon_bytes, file_bytes, shmem_bytes; /* resident */
    uint64_t swap_bytes;
    uint64_t huge_bytes;   /* hugetlb pages, which the kernel does not count as resident */
    uint64_t size_bytes;   /* address space */
    uint64_t minor, major; /* page faults since the start */
    uint64_t start_ticks;
    double faults_per_s;                     /* computed by overview_since(); < 0: not known */
    enum overview_query_result query_result; /* for the members that follow */
    char *command;                           /* NULL: not known */
    uint64_t pss_bytes;
    bool pss_known;
};

/** The process with the most major faults of the interval. */
struct overview_faulter {
    int pid; /* 0: no process had any */
    char name[64];
    double major_per_s;
    /* the innermost cgroup around it that is (almost) at its limit; NULL: there is none, or it is not known */
    char *cgroup;
    uint64_t usage_bytes, limit_bytes; /* of that cgroup */
};

struct overview_cgroup {
    char *path;
    unsigned version;
    uint64_t usage_bytes;
    uint64_t limit_bytes; /* UINT64_MAX: none */
    uint64_t swap_bytes, anon_bytes, file_bytes, shmem_bytes, kernel_bytes;
    bool swap_known, kinds_known, kernel_known, kills_known;
    uint64_t oom_kills;
};

struct overview_slab {
    char name[64];
    uint64_t bytes, objects, active, object_bytes;
};

struct overview_node {
    unsigned id;
    uint64_t total_bytes, free_bytes, anon_bytes, file_bytes, slab_bytes;
    /* pages allocated on the preferred node; here although another node was preferred; elsewhere although
     * this one was */
    uint64_t hit, miss, foreign;
};

struct overview_huge {
    uint64_t size_bytes;
    uint64_t total, free, reserved, surplus; /* pages */
};

struct overview_kill {
    uint64_t boot_ns; /* on the clock of the kernel log */
    uint64_t at_ns;   /* since 1970, computed from boot_ns; 0: not known */
    int pid;
    unsigned uid;
    char name[64], trigger[64];
    char *cgroup;      /* the cgroup that reached its limit; NULL: not known */
    bool cgroup_limit; /* the limit of a cgroup was reached; else the machine had no memory left */
    uint64_t anon_bytes, file_bytes, shmem_bytes, page_table_bytes;
    int64_t score_adjust;
};

struct overview_event {
    const char *key;
    uint64_t count; /* since the previous snapshot */
    bool known;
};
#define OVERVIEW_EVENTS_MAX 8

/** A note about something unusual, in one line. Urgent notes are about a present shortage of memory. */
struct overview_note {
    char *text;
    bool urgent;
};

struct overview {
    char host[65], release[65];
    uint64_t taken_ns;    /* CLOCK_REALTIME */
    uint64_t boot_ns;     /* CLOCK_BOOTTIME */
    uint64_t interval_ns; /* since the previous snapshot; 0: there is none */
    uint64_t memory[OVERVIEW_MEMORY_KINDS];
    uint64_t memory_known; /* bits by enum overview_memory */
    struct overview_counts counts;
    double rate[OVERVIEW_COUNTS]; /* a second, over the interval; < 0: not known */
    struct overview_pressure pressure[OVERVIEW_RESOURCES];
    struct VEC(struct overview_zone) zones;
    struct VEC(struct overview_swap) swaps;
    struct overview_processes VEC(struct overview_process) processes;
    uint32_t n_processes, n_stuck; /* number of all processes, and of those in state D */
    struct overview_faulter faulter;
    struct overview_cgroups VEC(struct overview_cgroup) cgroups;
    struct VEC(struct overview_slab) slabs;
    struct VEC(struct overview_node) nodes;
    struct VEC(struct overview_huge) huge;
    char thp[16];                                          /* "always", "madvise", "never"; "": not known */
    struct overview_kills VEC(struct overview_kill) kills; /* oldest first */
    uint64_t kills_since_ns; /* earlier kills are not known; 0: all since boot are known */
    struct overview_event events[OVERVIEW_EVENTS_MAX];
    unsigned n_events;
    struct VEC(char *) unknown; /* the values that could not be read, in words, with the reason */
    struct VEC(struct overview_note) notes;
    /* whether `allium sys` has a tool of this name, which a note may point to; NULL: it has none */
    bool (*has_tool)(const char *name);
};

void overview_release(struct overview *m);
/** Returns whether a cgroup is so near to its limit that its tasks have to reclaim. */
static inline bool overview_near_limit(uint64_t usage_bytes, uint64_t limit_bytes)
{
    return limit_bytes != UINT64_MAX && (double)usage_bytes >= 0.95 * (double)limit_bytes;
}
static inline bool overview_memory_has(const struct overview *m, enum overview_memory kind)
{
    return m->memory_known >> kind & 1;
}
void overview_memory_set(struct overview *m, enum overview_memory kind, uint64_t bytes);
/** Returns 0 if the value is not known. */
static inline uint64_t overview_memory_of(const struct overview *m, enum overview_memory kind)
{
    return m->memory[kind];
}
static inline bool overview_count_has(const struct overview_counts *c, enum overview_count count)
{
    return c->known >> count & 1;
}
void overview_count_set(struct overview_counts *c, enum overview_count count, uint64_t value);
/** Computes the memory that is in no kind, and takes the per-CPU lists of the zones into account. Call it
 * when all else is known. */
void overview_account(struct overview *m);
/** Computes the rates of the interval between two snapshots; `before` is NULL if there is none. Only
 * processes in both have rates. */
void overview_since(struct overview *now, const struct overview *before);
/** Makes the notes from all other members. */
void overview_note(struct overview *m);

static inline uint64_t overview_process_rss(const struct overview_process *p)
{
    return p->anon_bytes + p->file_bytes + p->shmem_bytes;
}

enum overview_sort {
    OVERVIEW_BY_MEMORY, /* resident and in swap */
    OVERVIEW_BY_RSS,
    OVERVIEW_BY_SWAP,
    OVERVIEW_BY_ANON,
    OVERVIEW_BY_FILE,
    OVERVIEW_BY_SHMEM,
    OVERVIEW_BY_FAULTS, /* of the interval, and where that is not known, of all */
};
/** Sorts, and keeps only the first `top` processes; 0: keeps all. */
void overview_sort_processes(struct overview_processes *p, enum overview_sort by, uint32_t top);

#endif
