/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_LEDGER_H
#define WIRE_LEDGER_H

/*
 * The layout of the ledger: the heap profile and the accounts of one process image, as a file of shared memory. The
 * target writes the file, and any reader may copy it at any time. ledger_make.h makes a ledger, ledger_grow.h lets it
 * grow.
 *
 * Runs in: target (writer) and tool (reader).
 * Threads: any thread writes. A counter changes by one instruction, atomically unless only one thread writes to it.
 *
 * A file is a header of one page, an unused page, and LEDGER_TABLES regions, whose offsets do not change. Each region
 * is an array of records that grows at its end. The file is sparse: its apparent size is reserved address space; the
 * first `ready_bytes` of each region are backed by memory.
 *
 * Consistency: each counter is correct by itself. Sums over several counters may differ by the operations in progress.
 * A sample is whole if its `check` matches its `serial`, and both are the same in two copies taken one after the other.
 *
 * Invariant: a reader trusts no value of a ledger. It checks each index, length and offset at every use.
 */

#include <stdint.h>

#include "wire/control_page.h"
#include "wire/ledger_accounts.h"

#define LEDGER_MAGIC        0x3152454744454c41u /* "ALEDGER1", little endian */
#define LEDGER_VERSION      8u                  /* changes with the layout and with the meaning of a member */
#define LEDGER_HEADER_BYTES 4096u
#define LEDGER_PAGE_BYTES   4096u
#define LEDGER_NONE         UINT32_MAX

/* The suffixes of files in the ledger's directory. The name before the suffix is PID-IMAGE: the process id in decimal,
 * and image_id in 16 hexadecimal digits. */
#define LEDGER_SUFFIX         ".ledger"
#define LEDGER_CONTROL_SUFFIX ".control"
#define LEDGER_RING_SUFFIX    ".ring"
#define LEDGER_EVENTS_SUFFIX  ".events" /* event_table.h */
/* sum/sum_layout.h. It ends with a suffix that ledger_sweep.c knows. */
#define LEDGER_SUMS_SUFFIX ".sums" LEDGER_EVENTS_SUFFIX
/* A ledger with tags and without samples and sites, made by liballium.so in a process without the agent. */
#define LEDGER_TAGS_SUFFIX ".tags"
/* The name of a recorder's directory begins with this prefix. `allium run` (the recorder) makes this directory for the
 * ledgers of the programs that it starts, in the user's directory of ledgers; see ledger_make.h. */
#define LEDGER_RUN_PREFIX "run-"

/*
 * The tables in the order of their regions. Records refer to their own table or to tables before it; readers rely on
 * this. The one exception: records of LEDGER_TAG_STACKS may have the number of a site. Small tables come first, so that
 * the pages used from the start lie close together.
 */
enum ledger_table {
    LEDGER_PERIODS,      /* struct ledger_period */
    LEDGER_THREADS,      /* struct ledger_thread; record 0, "other", is for all threads without a record */
    LEDGER_STRINGS,      /* NUL-terminated bytes */
    LEDGER_MODULES,      /* struct ledger_module */
    LEDGER_FRAMES,       /* uint64_t, see LEDGER_FRAME_* */
    LEDGER_STACK_FRAMES, /* uint32_t: indices of frames, leaf first */
    LEDGER_STACKS,       /* struct ledger_stack */
    LEDGER_CELLS,        /* struct ledger_cell */
    LEDGER_SAMPLES,      /* struct ledger_sample */
    LEDGER_FREES,        /* struct ledger_free: one ring for each shard, shard 0 first */
    LEDGER_ACCOUNTS,     /* struct ledger_accounts: 128 accounts each; account 0 is not used */
    LEDGER_TAGS,         /* struct ledger_tag */
    LEDGER_TAG_STACKS,   /* struct ledger_tag_stack */
    LEDGER_LATENCIES,    /* struct ledger_latency */
    LEDGER_SITE_SUMS,    /* struct ledger_site_sums: 64 sites each */
    LEDGER_SITES,        /* struct ledger_site; this table and LEDGER_SITE_SUMS: only with ALLIUM_SITES=1 */
    LEDGER_TABLES
};

struct ledger_region {
    uint64_t offset;       /* of the first record, in bytes from the start of the file */
    uint64_t limit_bytes;  /* reserved address space; 0: the ledger does not have this table */
    uint64_t ready_bytes;  /* bytes backed by memory; grows */
    uint64_t used;         /* records appended; may exceed the records that fit; 0 for LEDGER_FREES */
    uint32_t record_bytes; /* size of a record */
    uint32_t pad;
};

/*
 * Sums over samples. `samples` and `seen_bytes` are plain sums. `bytes_q` and `count_q` are weighted sums with LEDGER_Q
 * fraction bits: unbiased estimates of the bytes and the number of all allocations.
 */
#define LEDGER_Q 8
struct ledger_sums {
    uint64_t samples;
    uint64_t seen_bytes; /* requested sizes of the samples */
    uint64_t bytes_q;
    uint64_t count_q;
};

/* Counters of events that could not be recorded or observed, and of failed requests and inherited frees. */
enum ledger_loss {
    LEDGER_LOST_SAMPLES, /* samples without a ledger, or without room for stack or cell: missing everywhere */
    LEDGER_LOST_LIVE,    /* samples without room to follow them: missing among the live objects */
    /* malloc() returned the address of a live sample: the agent has not seen the free of the sample */
    LEDGER_LOST_FREES_UNSEEN,
    LEDGER_LOST_STACK_CUT,    /* walks that ended at the limit of the depth, before the outermost frame */
    LEDGER_LOST_STACK_BROKEN, /* walks that met code without unwind rules, or an inconsistent stack */
    LEDGER_LOST_THREADS, /* samples of threads without a record (the table is full): counted for "other" */
    LEDGER_LOST_GROWTH,  /* refused attempts to grow the ledger */
    LEDGER_LOST_CHILDREN, /* programs started that may be missing from the recording; their names are unknown */
    LEDGER_FAILED_REQUESTS, /* failed requests that took the cold path; others are not counted */
    LEDGER_INHERITED_FREES, /* sampled objects of the parent that this fork child freed */
    /* tags that got no account, and call instructions for which callsite_tag() had no tag (at least so many) */
    LEDGER_LOST_TAGS,
    /* objects and mappings of tags that could not be entered into the map or tree, or removed from the tree */
    LEDGER_LOST_TAGGED,
    LEDGER_LOST_TAGGED_FREES, /* objects of tags whose free was not seen before their address came again */
    LEDGER_LOST_DETAILS,      /* calls of tags or sites whose stack or duration could not be stored */
    LEDGER_LOST_TAG_VERSIONS, /* tags of another ALLIUM_TAG_VERSION, which are not counted */
    LEDGER_LOSSES
};

/* Why the ledger, or a table beside it, could not grow. The header has the first reason. */
enum ledger_full {
    LEDGER_NOT_FULL,
    LEDGER_FULL_LIMIT,      /* the limit of the ledger or of one of its tables */
    LEDGER_FULL_FILESYSTEM, /* the ledger's tmpfs is nearly full */
    LEDGER_FULL_CGROUP,     /* a memory cgroup is nearly full */
    LEDGER_FULL_SECCOMP,    /* the process entered seccomp: no system call may be made */
    LEDGER_FULL_REFUSED,    /* the kernel refused to back or map memory */
    /* too little would be left of a limit of the program (RLIMIT_AS, RLIMIT_DATA) */
    LEDGER_FULL_OWN_LIMIT,
    LEDGER_FULL_SHARE, /* the ledger has its full share of the memory cgroup's limit */
};

/* The ledger takes at most 1/LEDGER_CGROUP_SHARE of a memory cgroup's limit, because the program may need the rest. */
#define LEDGER_CGROUP_SHARE 12u

enum ledger_state {
    LEDGER_RUNNING,
    LEDGER_EXITED,   /* the destructor of the agent or tag library has run: an orderly end */
    LEDGER_DETACHED, /* allium detach has ended it, and the process may run on */
};

enum ledger_clock {
    LEDGER_CLOCK_TSC, /* ticks are the time stamp counter */
    LEDGER_CLOCK_NS,  /* ticks are CLOCK_MONOTONIC nanoseconds */
};

/*
 * Counters that each allocation and each free of a sample changes. There are several shards of them, so that threads
 * seldom share a cache line; the value of a counter is the sum over all shards. A change of the live bytes is added to
 * the shard, and from time to time moved to the header, so that the peak is not computed at each operation. While the
 * process has only one thread, the change is added to the header at once.
 */
#define LEDGER_SHARDS 24
/* Each of the first LEDGER_SHARDS_OWNED shards belongs to one thread, so its counters need no atomic additions. */
#define LEDGER_SHARDS_OWNED 16
#define LEDGER_SERIAL_SHIFT 48 /* a serial is shard << 48 | count */
struct ledger_shard {
    uint64_t begun, done; /* number of allocations and frees of samples: counting begun, counting done */
    uint64_t cold_ticks;  /* time of this counting, estimated: the first 64 and then one in 64 are timed */
    uint64_t allocated_bytes_q;
    uint64_t pending_bytes_q; /* signed: change of live bytes that is not yet in live_bytes_q */
    uint64_t serials;
    uint64_t vacant;    /* number of changes << 32 | index of the first unused sample, or LEDGER_NONE */
    uint64_t next_free; /* number of frees written to this shard's ring so far */
} __attribute__((aligned(128))); /* two lines: processors fetch them in pairs */

struct ledger_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint64_t image_id; /* random; a new one after exec and after fork */
    int32_t pid;       /* in the target's own PID namespace */
    int32_t parent_pid;
    uint64_t parent_image_id; /* image from which this one was forked; 0: it started with exec */
    uint64_t forked_ticks;    /* when the library noticed that it is in a fork child; 0: started with exec */
    uint32_t clock;           /* enum ledger_clock */
    uint32_t state;           /* enum ledger_state */
    /* when the ledger was made, on three clocks */
    uint64_t began_ticks, began_monotonic_ns, began_realtime_ns;
    uint64_t ended_ticks;     /* when the image exited, once `state` is not LEDGER_RUNNING; else undefined */
    uint64_t off_ticks;       /* how long sampling was off in all, without the time since off_since_ticks */
    uint64_t off_since_ticks; /* when sampling was turned off; 0: it is on */
    uint64_t map_start, map_bytes; /* address and size of this header in the target */
    /* address in the target of the directory of the map of objects of sites (wire/object_map_layout.h); 0: none yet */
    uint64_t objects;
    uint64_t tagged; /* address in the target of the directory of the map of objects of tags; 0: none yet */
    /* address in the target of the tree of mappings (wire/object_map_layout.h); 0: none yet */
    uint64_t ranges;
    uint64_t limit_bytes; /* hard limit of `ready_bytes` */
    uint64_t ready_bytes; /* of the header and all regions together */
    uint32_t full;        /* enum ledger_full */
    uint32_t exe;         /* path of the executable: index in LEDGER_STRINGS */
    char comm[16];
    uint64_t seed;
    struct ledger_region regions[LEDGER_TABLES];

    /* Most members from here on change at each allocation or free of a sample. */
    uint64_t live_bytes_q __attribute__((aligned(64))); /* without the pending_bytes_q of the shards */
    uint64_t peak_bytes_q;
    uint64_t peak_epoch; /* grows by 1 each time peak_bytes_q grows */
    uint64_t peak_ticks;
    uint64_t losses[LEDGER_LOSSES];
#define LEDGER_FILTERS_UNKNOWN UINT32_MAX
    uint32_t seccomp_filters;    /* number when the ledger was made, or LEDGER_FILTERS_UNKNOWN */
    uint32_t events_have_stacks; /* 1: events of the trace beside have numbers of stacks of this ledger */
    struct ledger_shard shards[LEDGER_SHARDS];
};
_Static_assert(sizeof(struct ledger_header) <= LEDGER_HEADER_BYTES, "the header is one page");

#define LEDGER_BUILD_ID_BYTES 20
struct ledger_module {
    uint64_t start, end; /* the mapped addresses: `end` is the first one behind the module */
    uint64_t bias;       /* run-time address - address in the ELF file */
    uint64_t seen_ticks; /* when the tag library added this record; 0: the agent added it */
    uint32_t path;       /* index in LEDGER_STRINGS: the path that the target's loader knows */
    uint8_t build_id_len;
    uint8_t build_id[LEDGER_BUILD_ID_BYTES];
    uint8_t pad[7];
};

/*
 * A frame: the index of a module record << LEDGER_FRAME_MODULE_SHIFT | a virtual address in the ELF file of the module.
 * A library that was loaded again may have another record. The address of a caller is its return address, so the call
 * instruction ends there. If a signal interrupted the function, the address is that of the next instruction of the
 * function, and LEDGER_FRAME_EXACT is set.
 */
#define LEDGER_FRAME_EXACT        (1ull << 63)
#define LEDGER_FRAME_MODULE_SHIFT 48
#define LEDGER_FRAME_MODULE_MASK  0x7fffu
#define LEDGER_FRAME_OFFSET_MASK  ((1ull << 48) - 1)
#define LEDGER_MODULE_UNKNOWN     0x7fffu /* code outside every module (JIT): the address is 0 */

enum ledger_stack_end {
    LEDGER_STACK_WHOLE,   /* the walk reached the outermost frame */
    LEDGER_STACK_CUT,     /* the stack is deeper than the limit */
    LEDGER_STACK_NO_CODE, /* the caller is code outside every module (JIT) */
    LEDGER_STACK_NO_RULE, /* the module has no unwind rule for the pc */
    LEDGER_STACK_BROKEN,  /* the frames contradict each other */
};

struct ledger_stack {
    uint32_t hash;
    uint32_t first; /* index of the innermost frame in LEDGER_STACK_FRAMES */
    uint16_t depth; /* frames */
    uint8_t end;    /* enum ledger_stack_end */
    uint8_t pad[5];
};

struct ledger_thread {
    int32_t tid; /* 0: a thread that could not be identified */
    uint32_t ordinal;
    uint64_t first_ticks;
    char name[16]; /* comm of the thread when it first allocated or freed a sample */
};

struct ledger_period {
    uint64_t period_bytes; /* 1: each allocation is a sample; all sums are exact */
    uint64_t since_ticks;
};

#define LEDGER_LIFETIMES 16
/* Lifetime class k counts the samples that lived less than 2^(2k+14) ticks and belong to no class below k. The last
 * class also counts all samples that lived longer. */
#define LEDGER_LIFETIME_FIRST_SHIFT 14

/* The counters of the samples with one stack, one allocating thread, one size class and one period. Size class k:
 * 2^k <= requested bytes < 2^(k+1); class 0 also has the size 0. */
struct ledger_cell {
    uint32_t stack;
    uint16_t thread;
    uint8_t size_class;
    uint8_t period;
    /* The header's peak_epoch when `at_peak` was written. If the header's peak_epoch is greater now, the cell has not
     * changed since the peak: its sums at the peak are `allocated` - `freed`, not `at_peak`. */
    uint64_t peak_epoch;
    struct ledger_sums allocated;
    uint64_t temporary_samples;
    uint64_t temporary_bytes_q;
    struct ledger_sums freed;
    uint32_t lifetimes[LEDGER_LIFETIMES]; /* number of freed samples, by lifetime class */
    struct ledger_sums at_peak;
};

#define LEDGER_SLACK_UNKNOWN UINT32_MAX /* there is no malloc_usable_size() for the allocator */
struct ledger_sample {
    uint64_t address; /* 0: the record is unused */
    uint64_t serial;
    uint64_t size_bytes; /* as requested */
    uint64_t born_ticks;
    uint32_t cell;
    uint32_t slack_bytes; /* usable - requested bytes, or LEDGER_SLACK_UNKNOWN */
    uint32_t next;        /* next record in the list of unused records; LEDGER_NONE: none */
    uint32_t check;       /* ledger_check(serial) */
};

struct ledger_free {
    uint64_t number; /* number of the free in its shard, from 1 on; written last; 0: no complete record */
    uint64_t serial; /* of the sample */
    uint64_t address;
    uint64_t size_bytes;
    uint64_t born_ticks, freed_ticks;
    uint32_t cell; /* cell of the stack that allocated the object */
    /* `stack`: the stack that freed the object; `caller`: only the frame of the call that freed it. At most one of the
     * two is stored; the other one, or both if there was no room, is LEDGER_NONE. */
    uint32_t stack, caller;
    uint16_t thread;     /* the thread that freed the object */
    uint8_t reallocated; /* 1: a call of realloc() has replaced or freed the object */
    uint8_t pad;
};

/* The calls of one tag or call site with one stack, counted while LEDGER_ACTION_STACKS was in force. */
#define LEDGER_STACK_OF_SITE (1u << 31)
struct ledger_tag_stack {
    /* the account of the tag, or LEDGER_STACK_OF_SITE | the number of the site; 0: the record is being written */
    uint32_t account;
    uint32_t stack;
    uint64_t calls, bytes;
};

/*
 * The durations of the calls of a tag, counted while LEDGER_ACTION_LATENCY was in force. Below 8 ns, each class is one
 * nanosecond wide. From 8 ns on, each power of two has eight classes, so the width of a class is at most an eighth of
 * its least time.
 */
/* The number of classes. They reach up to 2^38 ns (some four and a half minutes); the last one also counts all longer
 * calls. */
#define LEDGER_LATENCY_CLASSES 288u
struct ledger_latency {
    uint32_t account; /* 0: the record is being written */
    uint32_t pad;
    uint64_t calls, sum_ns, most_ns;
    uint64_t of[LEDGER_LATENCY_CLASSES];
};

static inline uint32_t ledger_latency_class(uint64_t ns)
{
    if (ns < 8)
        return (uint32_t)ns;
    unsigned power = 63 - (unsigned)__builtin_clzll(ns);
    uint32_t class = (power - 2) * 8 + (uint32_t)(ns >> (power - 3) & 7);
    return class < LEDGER_LATENCY_CLASSES ? class : LEDGER_LATENCY_CLASSES - 1;
}

/** Returns the least time of a class, in nanoseconds. */
static inline uint64_t ledger_latency_least(uint32_t class)
{
    return class < 8 ? class : (8 + (uint64_t) class % 8) << (class / 8 - 1);
}

/*
 * The account of a call site. `allocated` counts the objects that the site allocated; `released` counts those of them
 * that were freed, by any site; `freed` counts the objects that the site itself freed, allocated by any site.
 * Each shard has a set of these counters, as in ledger_accounts.h. A set fills one cache line.
 */
#define LEDGER_SITES_TOGETHER 64u
struct ledger_site_words {
    uint64_t allocated_calls, allocated_bytes, allocated_usable_bytes;
    uint64_t released_calls, released_bytes, released_usable_bytes;
    uint64_t freed_calls, freed_bytes;
} __attribute__((aligned(64)));
struct ledger_site_sums {
    struct ledger_site_words words[LEDGER_ACCOUNT_SHARDS][LEDGER_SITES_TOGETHER];
};

/*
 * A call instruction that allocates or frees. The first two records are not sites. The sums of LEDGER_SITE_NOBODY
 * count objects that could not be entered into the map (`allocated`), objects whose free was not seen (`released`), and
 * frees of objects that are not in the map (`freed`). The sums of LEDGER_SITE_OTHER are those of all sites without a
 * record of their own.
 */
enum { LEDGER_SITE_NOBODY, LEDGER_SITE_OTHER, LEDGER_SITE_FIRST };
struct ledger_site {
    uint64_t failed; /* failed requests */
    uint32_t frame;  /* index in LEDGER_FRAMES of the frame that makes the call; LEDGER_NONE: not known */
    /* If the call reaches the allocator through wrapper functions: the number of the site in the innermost wrapper,
     * which calls the allocator. 0: the call is to the allocator itself. */
    uint32_t wrapper;
    uint32_t flags; /* LEDGER_SITE_* */
    /* 0: this record is a call. Else the account of a tag: this record counts the allocations of that tag. */
    uint32_t tag;
};
/* flag of LEDGER_SITE_NOBODY: there is no address space for the map of objects, so no object is followed */
#define LEDGER_SITE_UNFOLLOWED 1u
/* flag of a site in a wrapper function: its allocations count for the caller of the wrapper, if that is known */
#define LEDGER_SITE_WRAPPER 2u

/** Returns the size of a record of the table, in bytes. */
static inline uint32_t ledger_record_bytes(enum ledger_table table)
{
    static const uint32_t bytes[LEDGER_TABLES] = {
        [LEDGER_PERIODS] = sizeof(struct ledger_period),
        [LEDGER_THREADS] = sizeof(struct ledger_thread),
        [LEDGER_STRINGS] = 1,
        [LEDGER_MODULES] = sizeof(struct ledger_module),
        [LEDGER_FRAMES] = sizeof(uint64_t),
        [LEDGER_STACK_FRAMES] = sizeof(uint32_t),
        [LEDGER_STACKS] = sizeof(struct ledger_stack),
        [LEDGER_CELLS] = sizeof(struct ledger_cell),
        [LEDGER_SAMPLES] = sizeof(struct ledger_sample),
        [LEDGER_FREES] = sizeof(struct ledger_free),
        [LEDGER_ACCOUNTS] = sizeof(struct ledger_accounts),
        [LEDGER_TAGS] = sizeof(struct ledger_tag),
        [LEDGER_TAG_STACKS] = sizeof(struct ledger_tag_stack),
        [LEDGER_LATENCIES] = sizeof(struct ledger_latency),
        [LEDGER_SITE_SUMS] = sizeof(struct ledger_site_sums),
        [LEDGER_SITES] = sizeof(struct ledger_site),
    };
    return bytes[table];
}

/**
 * Returns the live bytes in a copy of a ledger, with LEDGER_Q fraction bits: the sum over the header and the shards, or
 * 0 if the sum is negative.
 */
static inline uint64_t ledger_live_bytes_q(const struct ledger_header *h)
{
    uint64_t sum = h->live_bytes_q;
    for (int i = 0; i < LEDGER_SHARDS; i++)
        sum += h->shards[i].pending_bytes_q;
    return (int64_t)sum > 0 ? sum : 0;
}

/** Returns a number that changes whenever the sums of a cell may have changed. */
static inline uint64_t ledger_operations(const struct ledger_header *h)
{
    uint64_t sum = 0;
    for (int i = 0; i < LEDGER_SHARDS; i++)
        sum += h->shards[i].begun + h->shards[i].done;
    return sum;
}

static inline uint64_t ledger_allocated_bytes_q(const struct ledger_header *h)
{
    uint64_t sum = 0;
    for (int i = 0; i < LEDGER_SHARDS; i++)
        sum += h->shards[i].allocated_bytes_q;
    return sum;
}

static inline uint32_t ledger_check(uint64_t serial)
{
    return (uint32_t)(serial * 0x9e3779b97f4a7c15u >> 32) | 1u;
}

static inline uint8_t ledger_size_class(uint64_t size_bytes)
{
    return size_bytes ? (uint8_t)(63 - __builtin_clzll(size_bytes)) : 0;
}

static inline unsigned ledger_lifetime_class(uint64_t ticks)
{
    unsigned bits = ticks ? 64 - (unsigned)__builtin_clzll(ticks) : 0;
    if (bits <= LEDGER_LIFETIME_FIRST_SHIFT)
        return 0;
    unsigned k = (bits - LEDGER_LIFETIME_FIRST_SHIFT + 1) / 2;
    return k < LEDGER_LIFETIMES ? k : LEDGER_LIFETIMES - 1;
}

#define LEDGER_PERIOD_MAX     (1ull << 40)
#define LEDGER_PERIOD_DEFAULT (512ull << 10)

#endif
