/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_OVERVIEW_H
#define MODEL_OVERVIEW_H

/*
 * What a machine says of its memory at one moment: the shape that `allium sys` shows. Who fills it and who shows it know
 * nothing of each other. Sizes are bytes; what the kernel counts in pages or KiB was turned into them.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its lists and their texts, until machine_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/** Kinds of memory, in bytes. They overlap, as those of /proc/meminfo do. */
enum machine_memory {
    MACHINE_TOTAL,
    MACHINE_FREE,
    MACHINE_AVAILABLE,
    MACHINE_BUFFERS,
    MACHINE_CACHED,
    MACHINE_SWAP_CACHED,
    MACHINE_ACTIVE_ANON,
    MACHINE_INACTIVE_ANON,
    MACHINE_ACTIVE_FILE,
    MACHINE_INACTIVE_FILE,
    MACHINE_UNEVICTABLE,
    MACHINE_LOCKED,
    MACHINE_SWAP_TOTAL,
    MACHINE_SWAP_FREE,
    MACHINE_ZSWAP,    /* what the compressed pages of zswap take */
    MACHINE_ZSWAPPED, /* what they were before */
    MACHINE_DIRTY,
    MACHINE_WRITEBACK,
    MACHINE_ANON,
    MACHINE_MAPPED,
    MACHINE_SHMEM,
    MACHINE_KERNEL_RECLAIMABLE, /* slab and others */
    MACHINE_SLAB_RECLAIMABLE,
    MACHINE_SLAB_UNRECLAIMABLE,
    MACHINE_KERNEL_STACKS,
    MACHINE_PAGE_TABLES,
    MACHINE_SECOND_PAGE_TABLES, /* of virtual machines, IOMMU */
    MACHINE_PER_CPU,
    MACHINE_VMALLOC, /* kernel stacks too, where they are made so */
    MACHINE_COMMIT_LIMIT,
    MACHINE_COMMITTED,
    MACHINE_ANON_HUGE,
    MACHINE_SHMEM_HUGE,
    MACHINE_FILE_HUGE,
    MACHINE_HUGETLB,
    MACHINE_CPU_LISTS,   /* free, in the lists of single CPUs: not in MACHINE_FREE */
    MACHINE_ZSMALLOC,    /* what zram and zswap keep */
    MACHINE_UNACCOUNTED, /* in none of the above: drivers, vmemmap, leaks of the kernel */
    MACHINE_MEMORY_KINDS,
};
_Static_assert(MACHINE_MEMORY_KINDS <= 64, "one bit for each kind");
/** JSON key without its unit. */
extern const char *const machine_memory_names[MACHINE_MEMORY_KINDS];

/** What is counted since boot. */
enum machine_count {
    MACHINE_FAULTS, /* minor and major ones */
    MACHINE_MAJOR_FAULTS,
    MACHINE_READ,           /* bytes from block devices, swap included */
    MACHINE_WRITTEN,        /* bytes */
    MACHINE_SWAPPED_IN,     /* bytes */
    MACHINE_SWAPPED_OUT,    /* bytes */
    MACHINE_ALLOCATED,      /* bytes of pages */
    MACHINE_FREED,          /* bytes */
    MACHINE_SCANNED_KSWAPD, /* bytes looked at, to reclaim them */
    MACHINE_SCANNED_DIRECT,
    MACHINE_SCANNED_CGROUP, /* for the limit of a memory cgroup */
    MACHINE_STOLEN_KSWAPD,  /* bytes reclaimed */
    MACHINE_STOLEN_DIRECT,
    MACHINE_STOLEN_CGROUP,
    MACHINE_REFAULTED_ANON, /* bytes reclaimed and soon wanted again */
    MACHINE_REFAULTED_FILE,
    MACHINE_KSWAPD_RUNS,
    MACHINE_DIRECT_STALLS,  /* an allocation had to reclaim for itself */
    MACHINE_COMPACT_STALLS, /* or to compact */
    MACHINE_OOM_KILLS,
    MACHINE_HUGE_FAULTS, /* that got a huge page, */
    MACHINE_HUGE_FAILED, /* or none, and small ones */
    MACHINE_COUNTS,
};
struct machine_count_name {
    const char *key;   /* JSON key without unit */
    const char *label; /* for people */
    bool bytes;
};
extern const struct machine_count_name machine_count_names[MACHINE_COUNTS];

struct machine_counts {
    uint64_t at[MACHINE_COUNTS];
    uint64_t known; /* bit by enum machine_count */
};

struct machine_zone {
    unsigned node;
    char name[16];
    uint64_t free_bytes, min_bytes, low_bytes, high_bytes, managed_bytes;
    uint64_t cpu_lists_bytes; /* free, in lists of single CPUs */
};

struct machine_swap {
    char *path;
    char type[16];
    uint64_t size_bytes, used_bytes;
    int64_t priority;
    uint64_t memory_bytes; /* of zram: the memory that it takes; 0: not known */
};

enum machine_resource { MACHINE_PSI_MEMORY, MACHINE_PSI_IO, MACHINE_PSI_CPU, MACHINE_RESOURCES };
extern const char *const machine_resource_names[MACHINE_RESOURCES];

/** Share of time in which some task, or all that were not idle, waited. */
struct machine_stall {
    bool known;
    double avg10, avg60, avg300; /* percent */
    uint64_t total_us;
    double last; /* percent of the interval, from machine_since(); < 0: not known */
};
struct machine_pressure {
    struct machine_stall some, full;
};

/** What a figure of a process that has to be asked came to. */
enum machine_asked { MACHINE_NOT_ASKED, MACHINE_ANSWERED, MACHINE_MUTE, MACHINE_REFUSED };

struct machine_process {
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
    double faults_per_s;      /* from machine_since(); < 0: not known */
    enum machine_asked asked; /* for what follows */
    char *command;            /* NULL: not known */
    uint64_t pss_bytes;
    bool pss_known;
};

struct machine_cgroup {
    char *path;
    unsigned version;
    uint64_t usage_bytes;
    uint64_t limit_bytes; /* UINT64_MAX: none */
    uint64_t swap_bytes, anon_bytes, file_bytes, shmem_bytes, kernel_bytes;
    bool swap_known, kinds_known, kernel_known, kills_known;
    uint64_t oom_kills;
};

struct machine_slab {
    char name[64];
    uint64_t bytes, objects, active, object_bytes;
};

struct machine_node {
    unsigned id;
    uint64_t total_bytes, free_bytes, anon_bytes, file_bytes, slab_bytes;
    uint64_t hit, miss, foreign; /* pages allocated as wished; here for others; elsewhere for us */
};

struct machine_huge {
    uint64_t size_bytes;
    uint64_t total, free, reserved, surplus; /* pages */
};

struct machine_kill {
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

struct machine_event {
    const char *key;
    uint64_t count; /* since the look before */
    bool known;
};
#define MACHINE_EVENTS_MAX 8

/** What is out of the ordinary, in a line. The urgent ones are about memory that is short now. */
struct machine_note {
    char *text;
    bool urgent;
};

struct machine {
    char host[65], release[65];
    uint64_t taken_ns;    /* CLOCK_REALTIME */
    uint64_t boot_ns;     /* CLOCK_BOOTTIME: since the kernel's start */
    uint64_t interval_ns; /* since the look before; 0: there is none */
    uint64_t memory[MACHINE_MEMORY_KINDS];
    uint64_t memory_known; /* bit by enum machine_memory */
    struct machine_counts counts;
    double rate[MACHINE_COUNTS]; /* a second, of the interval; < 0: not known */
    struct machine_pressure pressure[MACHINE_RESOURCES];
    struct VEC(struct machine_zone) zones;
    struct VEC(struct machine_swap) swaps;
    struct machine_processes VEC(struct machine_process) processes;
    uint32_t n_processes, n_stuck; /* of all; of those, in state D */
    struct machine_cgroups VEC(struct machine_cgroup) cgroups;
    struct VEC(struct machine_slab) slabs;
    struct VEC(struct machine_node) nodes;
    struct VEC(struct machine_huge) huge;
    char thp[16];                                        /* "always", "madvise", "never"; "": not known */
    struct machine_kills VEC(struct machine_kill) kills; /* oldest first */
    uint64_t kills_since_ns; /* earlier ones are not known of; 0: all since boot */
    struct machine_event events[MACHINE_EVENTS_MAX];
    unsigned n_events;
    struct VEC(char *) unknown; /* what could not be read, in words, with the reason */
    struct VEC(struct machine_note) notes;
};

void machine_release(struct machine *m);
static inline bool machine_memory_has(const struct machine *m, enum machine_memory kind)
{
    return m->memory_known >> kind & 1;
}
void machine_memory_set(struct machine *m, enum machine_memory kind, uint64_t bytes);
/** 0 where it is not known. */
static inline uint64_t machine_memory_of(const struct machine *m, enum machine_memory kind)
{
    return m->memory[kind];
}
static inline bool machine_count_has(const struct machine_counts *c, enum machine_count count)
{
    return c->known >> count & 1;
}
void machine_count_set(struct machine_counts *c, enum machine_count count, uint64_t value);
/** What is in no kind of memory; also takes the zones' lists of single CPUs into account. After all else is known. */
void machine_account(struct machine *m);
/** Rates of the interval between two looks, `before` NULL for none; of processes those that are in both. */
void machine_since(struct machine *now, const struct machine *before);
/** The notes, from all the rest. */
void machine_note(struct machine *m);

static inline uint64_t machine_process_rss(const struct machine_process *p)
{
    return p->anon_bytes + p->file_bytes + p->shmem_bytes;
}

enum machine_sort {
    MACHINE_BY_MEMORY, /* resident and in swap */
    MACHINE_BY_RSS,
    MACHINE_BY_SWAP,
    MACHINE_BY_ANON,
    MACHINE_BY_FILE,
    MACHINE_BY_SHMEM,
    MACHINE_BY_FAULTS, /* of the interval, and where that is not known, of all */
};
/** Those that come first, in order; the others go. 0: all stay. */
void machine_sort_processes(struct machine_processes *p, enum machine_sort by, uint32_t top);

#endif
