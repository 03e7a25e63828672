/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_OVERVIEW_H
#define MODEL_OVERVIEW_H

/*
 * What a machine says of its memory at one moment: the shape that `allium sys` shows. Who fills it and who shows it
 * know nothing of each other. Sizes are bytes; what the kernel counts in pages or KiB was turned into them.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its lists and their texts, until overview_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/** Kinds of memory, in bytes. They overlap, as those of /proc/meminfo do. */
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
    OVERVIEW_ZSWAP,    /* what the compressed pages of zswap take */
    OVERVIEW_ZSWAPPED, /* what they were before */
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
    OVERVIEW_SECOND_PAGE_TABLES, /* of virtual machines, IOMMU */
    OVERVIEW_PER_CPU,
    OVERVIEW_VMALLOC, /* kernel stacks too, where they are made so */
    OVERVIEW_COMMIT_LIMIT,
    OVERVIEW_COMMITTED,
    OVERVIEW_ANON_HUGE,
    OVERVIEW_SHMEM_HUGE,
    OVERVIEW_FILE_HUGE,
    OVERVIEW_HUGETLB,
    OVERVIEW_CPU_LISTS,   /* free, in the lists of single CPUs: not in OVERVIEW_FREE */
    OVERVIEW_ZSMALLOC,    /* what zram and zswap keep */
    OVERVIEW_UNACCOUNTED, /* in none of the above: drivers, vmemmap, leaks of the kernel */
    OVERVIEW_MEMORY_KINDS,
};
_Static_assert(OVERVIEW_MEMORY_KINDS <= 64, "one bit for each kind");
/** JSON key without its unit. */
extern const char *const overview_memory_names[OVERVIEW_MEMORY_KINDS];

/** What is counted since boot. */
enum overview_count {
    OVERVIEW_FAULTS, /* minor and major ones */
    OVERVIEW_MAJOR_FAULTS,
    OVERVIEW_READ,           /* bytes from block devices, swap included */
    OVERVIEW_WRITTEN,        /* bytes */
    OVERVIEW_SWAPPED_IN,     /* bytes */
    OVERVIEW_SWAPPED_OUT,    /* bytes */
    OVERVIEW_ALLOCATED,      /* bytes of pages */
    OVERVIEW_FREED,          /* bytes */
    OVERVIEW_SCANNED_KSWAPD, /* bytes looked at, to reclaim them */
    OVERVIEW_SCANNED_DIRECT,
    OVERVIEW_SCANNED_CGROUP, /* for the limit of a memory cgroup */
    OVERVIEW_STOLEN_KSWAPD,  /* bytes reclaimed */
    OVERVIEW_STOLEN_DIRECT,
    OVERVIEW_STOLEN_CGROUP,
    OVERVIEW_REFAULTED_ANON, /* bytes reclaimed and soon wanted again */
    OVERVIEW_REFAULTED_FILE,
    OVERVIEW_KSWAPD_RUNS,
    OVERVIEW_DIRECT_STALLS,  /* an allocation had to reclaim for itself */
    OVERVIEW_COMPACT_STALLS, /* or to compact */
    OVERVIEW_OOM_KILLS,
    OVERVIEW_HUGE_FAULTS, /* that got a huge page, */
    OVERVIEW_HUGE_FAILED, /* or none, and small ones */
    OVERVIEW_COUNTS,
};
struct overview_count_name {
    const char *key;   /* JSON key without unit */
    const char *label; /* for people */
    bool bytes;
};
extern const struct overview_count_name overview_count_names[OVERVIEW_COUNTS];

struct overview_counts {
    uint64_t at[OVERVIEW_COUNTS];
    uint64_t known; /* bit by enum overview_count */
};

struct overview_zone {
    unsigned node;
    char name[16];
    uint64_t free_bytes, min_bytes, low_bytes, high_bytes, managed_bytes;
    uint64_t cpu_lists_bytes; /* free, in lists of single CPUs */
};

struct overview_swap {
    char *path;
    char type[16];
    uint64_t size_bytes, used_bytes;
    int64_t priority;
    uint64_t memory_bytes; /* of zram: the memory that it takes; 0: not known */
};

enum overview_resource { OVERVIEW_PSI_MEMORY, OVERVIEW_PSI_IO, OVERVIEW_PSI_CPU, OVERVIEW_RESOURCES };
extern const char *const overview_resource_names[OVERVIEW_RESOURCES];

/** Share of time in which some task, or all that were not idle, waited. */
struct overview_stall {
    bool known;
    double avg10, avg60, avg300; /* percent */
    uint64_t total_us;
    double last; /* percent of the interval, from overview_since(); < 0: not known */
};
struct overview_pressure {
    struct overview_stall some, full;
};

/** What a figure of a process that has to be asked came to. */
enum overview_asked { OVERVIEW_NOT_ASKED, OVERVIEW_ANSWERED, OVERVIEW_MUTE, OVERVIEW_REFUSED };

struct overview_process {
    int pid, parent;
    unsigned uid, threads;
    char state;
    bool kernel;
    char name[64];
    uint64_t anon_bytes, file_bytes, shmem_bytes; /* resident */
    uint64_t swap_bytes;
    uint64_t huge_bytes;   /* hugetlb: not resident by the kernel's count */
    uint64_t size_bytes;   /* address space */
    uint64_t minor, major; /* faults since its start */
    uint64_t start_ticks;
    double faults_per_s;       /* from overview_since(); < 0: not known */
    enum overview_asked asked; /* for what follows */
    char *command;             /* NULL: not known */
    uint64_t pss_bytes;
    bool pss_known;
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
    uint64_t hit, miss, foreign; /* pages allocated as wished; here for others; elsewhere for us */
};

struct overview_huge {
    uint64_t size_bytes;
    uint64_t total, free, reserved, surplus; /* pages */
};

struct overview_kill {
    uint64_t boot_ns; /* the kernel log's clock */
    uint64_t at_ns;   /* since 1970, from that; 0: not known */
    int pid;
    unsigned uid;
    char name[64], trigger[64];
    char *cgroup;      /* whose limit it was; NULL: not told */
    bool cgroup_limit; /* else the whole machine had no more */
    uint64_t anon_bytes, file_bytes, shmem_bytes, page_table_bytes;
    int64_t score_adjust;
};

struct overview_event {
    const char *key;
    uint64_t count; /* since the look before */
    bool known;
};
#define OVERVIEW_EVENTS_MAX 8

/** What is out of the ordinary, in a line. The urgent ones are about memory that is short now. */
struct overview_note {
    char *text;
    bool urgent;
};

struct overview {
    char host[65], release[65];
    uint64_t taken_ns;    /* CLOCK_REALTIME */
    uint64_t boot_ns;     /* CLOCK_BOOTTIME: since the kernel's start */
    uint64_t interval_ns; /* since the look before; 0: there is none */
    uint64_t memory[OVERVIEW_MEMORY_KINDS];
    uint64_t memory_known; /* bit by enum overview_memory */
    struct overview_counts counts;
    double rate[OVERVIEW_COUNTS]; /* a second, of the interval; < 0: not known */
    struct overview_pressure pressure[OVERVIEW_RESOURCES];
    struct VEC(struct overview_zone) zones;
    struct VEC(struct overview_swap) swaps;
    struct overview_processes VEC(struct overview_process) processes;
    uint32_t n_processes, n_stuck; /* of all; of those, in state D */
    struct overview_cgroups VEC(struct overview_cgroup) cgroups;
    struct VEC(struct overview_slab) slabs;
    struct VEC(struct overview_node) nodes;
    struct VEC(struct overview_huge) huge;
    char thp[16];                                          /* "always", "madvise", "never"; "": not known */
    struct overview_kills VEC(struct overview_kill) kills; /* oldest first */
    uint64_t kills_since_ns; /* earlier ones are not known of; 0: all since boot */
    struct overview_event events[OVERVIEW_EVENTS_MAX];
    unsigned n_events;
    struct VEC(char *) unknown; /* what could not be read, in words, with the reason */
    struct VEC(struct overview_note) notes;
};

void overview_release(struct overview *m);
static inline bool overview_memory_has(const struct overview *m, enum overview_memory kind)
{
    return m->memory_known >> kind & 1;
}
void overview_memory_set(struct overview *m, enum overview_memory kind, uint64_t bytes);
/** 0 where it is not known. */
static inline uint64_t overview_memory_of(const struct overview *m, enum overview_memory kind)
{
    return m->memory[kind];
}
static inline bool overview_count_has(const struct overview_counts *c, enum overview_count count)
{
    return c->known >> count & 1;
}
void overview_count_set(struct overview_counts *c, enum overview_count count, uint64_t value);
/** What is in no kind of memory; also takes the zones' lists of single CPUs into account. After all else is known. */
void overview_account(struct overview *m);
/** Rates of the interval between two looks, `before` NULL for none; of processes those that are in both. */
void overview_since(struct overview *now, const struct overview *before);
/** The notes, from all the rest. */
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
/** Those that come first, in order; the others go. 0: all stay. */
void overview_sort_processes(struct overview_processes *p, enum overview_sort by, uint32_t top);

#endif
