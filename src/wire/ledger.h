/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_LEDGER_H
#define WIRE_LEDGER_H

/*
 * The layout of the ledger: the heap profile of one process image, as a file of shared memory. The target
 * writes the file, and any reader may copy it at any time. ledger_make.h makes a ledger,
 * ledger_grow.h lets it grow.
 *
 * Runs in: target (writer) and tool (reader).
 * Threads: any thread writes; counters change by single atomic additions.
 *
 * A file is a header of one page and LEDGER_TABLES regions at fixed offsets. Each region is an array of
 * records that grows at its end. The file is sparse: its apparent size is reserved address space;
 * `ready_bytes` of each region is the part that is backed by memory.
 *
 * Consistency: each counter is a word and correct by itself. Sums over several counters may differ by the
 * operations in progress. A sample is whole if its `check` matches its `serial` in two copies taken one after
 * the other.
 *
 * Invariant: a reader trusts nothing that it finds here. It checks each index, length and offset at every
 * use.
 */

#include <stdint.h>

#include "wire/control_page.h"
#include "wire/ledger_accounts.h"

#define LEDGER_MAGIC        0x3152454744454c41u /* "ALEDGER1", little endian */
#define LEDGER_VERSION      8u                  /* changes with the layout and with the meaning of a member */
#define LEDGER_HEADER_BYTES 4096u
#define LEDGER_PAGE_BYTES   4096u
#define LEDGER_NONE         UINT32_MAX

/* The suffix of a file name in the ledger's directory. The name before it is PID-IMAGE (decimal, 16 hex
 * digits). */
#define LEDGER_SUFFIX         ".ledger"
#define LEDGER_CONTROL_SUFFIX ".control"
/* A ledger of tags only, made by liballium.so in a process without the agent. */
#define LEDGER_TAGS_SUFFIX ".tags"
/* The prefix of a recorder's own directory. It lies in the user's directory of ledgers; see ledger_make.h. */
#define LEDGER_RUN_PREFIX "run-"

/*
 * The tables in the order of their regions. A table refers only to tables before it; readers rely on that.
 * Small tables come first, so that the pages used from the start lie close together.
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
    LEDGER_FREES,        /* struct ledger_free: one ring for each shard, one behind the other */
    LEDGER_ACCOUNTS,     /* struct ledger_accounts; account 0 is not used */
    LEDGER_TAGS,         /* struct ledger_tag */
    LEDGER_TAG_STACKS,   /* struct ledger_tag_stack */
    LEDGER_LATENCIES,    /* struct ledger_latency */
    LEDGER_SITE_SUMS,    /* struct ledger_site_sums: 64 sites each */
    LEDGER_SITES,        /* struct ledger_site; only in processes started with exact sites */
    LEDGER_TABLES
};

struct ledger_region {
    uint64_t offset;       /* offset of the first record in the file */
    uint64_t limit_bytes;  /* reserved address space */
    uint64_t ready_bytes;  /* bytes backed by memory; grows */
    uint64_t used;         /* records ever requested; may exceed the records that fit */
    uint32_t record_bytes; /* size of a record */
    uint32_t pad;
};

/*
 * Weighted sums of samples. `seen_bytes` and `samples` are plain sums. The weighted sums have LEDGER_Q
 * fraction bits; they are unbiased estimates of the sums over all allocations.
 */
#define LEDGER_Q 8
struct ledger_sums {
    uint64_t samples;
    uint64_t seen_bytes; /* requested sizes of the samples */
    uint64_t bytes_q;
    uint64_t count_q;
};

/* What could not be recorded or observed. Each is a count of events. */
enum ledger_loss {
    LEDGER_LOST_SAMPLES, /* sampled, but no room for the stack or the counters: missing everywhere */
    LEDGER_LOST_LIVE,    /* counted as allocated, but no room to follow it: missing among the live objects */
    /* malloc() returned the address of a live sample: the agent has not seen the free of the sample */
    LEDGER_LOST_FREES_UNSEEN,
    LEDGER_LOST_STACK_CUT,    /* the stack is deeper than the limit */
    LEDGER_LOST_STACK_BROKEN, /* the walk met code without unwind rules, or an inconsistent stack */
    LEDGER_LOST_THREADS,  /* samples of threads without a record (the table is full): counted for "other" */
    LEDGER_LOST_GROWTH,   /* refused attempts to grow the ledger */
    LEDGER_LOST_CHILDREN, /* programs started without the agent that could not be noted (unobserved_list.h) */
    LEDGER_FAILED_REQUESTS,   /* failed requests that took the cold path; others are not counted */
    LEDGER_INHERITED_FREES,   /* sampled objects of the parent that this fork child freed */
    LEDGER_LOST_TAGS,         /* tags without an account */
    LEDGER_LOST_TAGGED,       /* objects of tags that could not be put into the map: charged to no account */
    LEDGER_LOST_TAGGED_FREES, /* objects of tags whose free was not seen: their address was allocated again */
    LEDGER_LOST_DETAILS,      /* calls of tags whose stack or duration could not be stored */
    LEDGER_LOST_TAG_VERSIONS, /* tags of another ALLIUM_TAG_VERSION, which are not counted */
    LEDGER_LOSSES
};

/* Why the ledger stopped growing: the first reason. */
enum ledger_full {
    LEDGER_NOT_FULL,
    LEDGER_FULL_LIMIT,      /* the ledger's own hard limit */
    LEDGER_FULL_FILESYSTEM, /* the tmpfs is nearly full */
    LEDGER_FULL_CGROUP,     /* the memory cgroup is nearly full */
    LEDGER_FULL_SECCOMP,    /* the process entered seccomp: the agent may make no system call */
    LEDGER_FULL_REFUSED,    /* the kernel refused */
    /* too little would be left of the program's own limit (RLIMIT_AS, RLIMIT_DATA) */
    LEDGER_FULL_OWN_LIMIT,
    LEDGER_FULL_SHARE, /* the ledger has its full share of the memory cgroup's limit */
};

/* The ledger takes at most 1/LEDGER_CGROUP_SHARE of a memory cgroup's limit, because the program may need the rest. */
#define LEDGER_CGROUP_SHARE 12u

enum ledger_state {
    LEDGER_RUNNING,
    LEDGER_EXITED, /* the agent's destructor ran: an orderly end */
};

enum ledger_clock {
    LEDGER_CLOCK_TSC, /* ticks are the time stamp counter */
    LEDGER_CLOCK_NS,  /* ticks are CLOCK_MONOTONIC nanoseconds */
};

/*
 * Counters that every cold operation changes, spread over several shards so that threads seldom share a cache line. The
 * value of a counter is the sum over all shards. Live bytes are added up in the shard, and moved to the header from
 * time to time (if the process has one thread: at once), so that the peak is not computed at every operation.
 */
#define LEDGER_SHARDS 24
/* The first LEDGER_SHARDS_OWNED shards belong to one thread each, so that their counters need no lock. */
#define LEDGER_SHARDS_OWNED 16
#define LEDGER_SERIAL_SHIFT 48 /* a serial is shard << 48 | count */
struct ledger_shard {
    uint64_t begun, done; /* operations on samples: started and finished */
    uint64_t cold_ticks;  /* time spent in these operations, estimated: one operation of 64 is timed */
    uint64_t allocated_bytes_q;
    uint64_t pending_bytes_q; /* signed: live bytes that are not yet in the header's live_bytes_q */
    uint64_t serials;
    uint64_t vacant;             /* tag << 32 | index of the first unused sample record; LEDGER_NONE: none */
    uint64_t next_free;          /* index into this shard's ring of frees */
} __attribute__((aligned(128))); /* two lines: processors fetch them in pairs */

struct ledger_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint64_t image_id; /* random; a new one after exec and after fork */
    int32_t pid;       /* in the target's own PID namespace */
    int32_t parent_pid;
    uint64_t parent_image_id; /* image from which this one was forked; 0: it started with exec */
    uint64_t forked_ticks;    /* when the agent noticed that this image was forked; 0: it started with exec */
    uint32_t clock;           /* enum ledger_clock */
    uint32_t state;           /* enum ledger_state */
    uint64_t began_ticks, began_monotonic_ns, began_realtime_ns; /* the start, on three clocks */
    uint64_t ended_ticks;          /* when the image exited; undefined before `state` is LEDGER_EXITED */
    uint64_t off_ticks;            /* how long sampling was off, up to off_since_ticks */
    uint64_t off_since_ticks;      /* when sampling was turned off; 0: it is on */
    uint64_t map_start, map_bytes; /* where the target maps this header, while the image runs */
    /* address in the target of the map of objects, by site (wire/object_map_layout.h); 0: none yet */
    uint64_t objects;
    uint64_t tagged; /* address in the target of the map of objects by tag; 0: none yet */
    /* address in the target of the tree of mappings (wire/object_map_layout.h); 0: none yet */
    uint64_t ranges;
    uint64_t limit_bytes; /* hard limit of all ready_bytes together */
    uint64_t ready_bytes; /* header included */
    uint32_t full;        /* enum ledger_full */
    uint32_t exe;         /* string: path of the executable */
    char comm[16];
    uint64_t seed;
    struct ledger_region regions[LEDGER_TABLES];

    /* The members from here on change all the time. */
    uint64_t live_bytes_q __attribute__((aligned(64))); /* without pending_bytes_q of the shards */
    uint64_t peak_bytes_q;
    uint64_t peak_epoch; /* grows by 1 each time live_bytes_q reaches a new maximum */
    uint64_t peak_ticks;
    uint64_t losses[LEDGER_LOSSES];
#define LEDGER_FILTERS_UNKNOWN UINT32_MAX
    uint32_t seccomp_filters; /* of the process when its ledger was made; LEDGER_FILTERS_UNKNOWN */
    struct ledger_shard shards[LEDGER_SHARDS];
};
_Static_assert(sizeof(struct ledger_header) <= LEDGER_HEADER_BYTES, "the header is one page");

#define LEDGER_BUILD_ID_BYTES 20
struct ledger_module {
    uint64_t start, end; /* the mapped addresses */
    uint64_t bias;       /* run-time address - address in the ELF file */
    uint64_t seen_ticks; /* when the agent first saw the module */
    uint32_t path;       /* string: the path that the target's loader knows */
    uint8_t build_id_len;
    uint8_t build_id[LEDGER_BUILD_ID_BYTES];
    uint8_t pad[7];
};

/*
 * A frame: the number of a module record and the address in its ELF file. A library that was loaded again has
 * a new record. The address of a caller is its return address: the call is one byte before. The pc of an
 * interrupted function is exact.
 */
#define LEDGER_FRAME_EXACT        (1ull << 63)
#define LEDGER_FRAME_MODULE_SHIFT 48
#define LEDGER_FRAME_MODULE_MASK  0x7fffu
#define LEDGER_FRAME_OFFSET_MASK  ((1ull << 48) - 1)
#define LEDGER_MODULE_UNKNOWN     0x7fffu /* code outside every module (JIT): offset is 0 */

enum ledger_stack_end {
    LEDGER_STACK_WHOLE,
    LEDGER_STACK_CUT,     /* the stack is deeper than the limit */
    LEDGER_STACK_NO_CODE, /* the caller is code outside every module (JIT) */
    LEDGER_STACK_NO_RULE, /* the module has no unwind rule for the pc */
    LEDGER_STACK_BROKEN,  /* the frames contradict each other */
};

struct ledger_stack {
    uint32_t hash;
    uint32_t first; /* index into LEDGER_STACK_FRAMES */
    uint16_t depth;
    uint8_t end; /* enum ledger_stack_end */
    uint8_t pad[5];
};

struct ledger_thread {
    int32_t tid; /* 0: a thread that could not be identified */
    uint32_t ordinal;
    uint64_t first_ticks;
    char name[16]; /* comm of the thread at its first sample */
};

struct ledger_period {
    uint64_t period_bytes; /* 1: every allocation, exact */
    uint64_t since_ticks;
};

#define LEDGER_LIFETIMES 16
/* Lifetime class k counts samples that lived less than 2^(2k+14) ticks; the last class counts all others. */
#define LEDGER_LIFETIME_FIRST_SHIFT 14

/* The counters of one stack in one thread, one size class (2^k <= size < 2^(k+1); 0 is in class 0) and one
 * period. */
struct ledger_cell {
    uint32_t stack;
    uint16_t thread;
    uint8_t size_class;
    uint8_t period;
    /* The epoch of `at_peak`. If it is older than the header's peak_epoch, the cell has not changed since the peak: all
     * bytes that are live now were live at the peak. */
    uint64_t peak_epoch;
    struct ledger_sums allocated;
    uint64_t temporary_samples;
    uint64_t temporary_bytes_q;
    struct ledger_sums freed;
    uint32_t lifetimes[LEDGER_LIFETIMES]; /* freed samples, by lifetime class */
    struct ledger_sums at_peak;
};

#define LEDGER_SLACK_UNKNOWN UINT32_MAX /* the allocator has no malloc_usable_size() */
struct ledger_sample {
    uint64_t address; /* 0: the record is unused */
    uint64_t serial;
    uint64_t size_bytes; /* as requested */
    uint64_t born_ticks;
    uint32_t cell;
    uint32_t slack_bytes; /* usable - requested, or LEDGER_SLACK_UNKNOWN */
    uint32_t next;        /* in the list of unused records */
    uint32_t check;       /* ledger_check(serial) */
};

struct ledger_free {
    uint64_t number; /* number in its shard + 1; 0: never written; written last */
    uint64_t serial; /* of the sample */
    uint64_t address;
    uint64_t size_bytes;
    uint64_t born_ticks, freed_ticks;
    uint32_t cell; /* cell of the stack that allocated the object */
    /* The stack that freed the object, or the frame of the call that freed it. LEDGER_NONE: the other one was stored,
     * or there was no room. */
    uint32_t stack, caller;
    uint16_t thread; /* the thread that freed the object */
    uint8_t reallocated;
    uint8_t pad;
};

/* The calls of one tag or call site from one stack, counted while LEDGER_ACTION_STACKS was in force. */
#define LEDGER_STACK_OF_SITE (1u << 31)
struct ledger_tag_stack {
    /* account of the tag, or number of the site with LEDGER_STACK_OF_SITE; 0: the record is being written */
    uint32_t account;
    uint32_t stack;
    uint64_t calls, bytes;
};

/*
 * The durations of the calls of a tag, counted while LEDGER_ACTION_LATENCY was in force. Below 8 ns, each class is one
 * nanosecond wide. Above that, each power of two has eight classes, so the error of a time is at most an eighth.
 */
/* up to 2^38 ns, some four and a half minutes; the last class counts all others */
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

/** Returns the least time of a class. */
static inline uint64_t ledger_latency_least(uint32_t class)
{
    return class < 8 ? class : (8 + (uint64_t) class % 8) << (class / 8 - 1);
}

/*
 * The account of a call site. `allocated` counts the objects that the site allocated; `released` counts those of them
 * that were freed, by any site; `freed` counts the objects that the site itself freed, allocated by any site.
 * Shards are as in ledger_accounts.h. The counters of a site in one shard fill one cache line.
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
 * A call instruction that reaches the allocator. The first records are not sites. The sums of
 * LEDGER_SITE_NOBODY count objects that could not be followed (`allocated`), objects whose address came again
 * before their free was seen (`released`), and frees of objects that are not followed (`freed`).
 * LEDGER_SITE_OTHER counts all sites without a record of their own.
 */
enum { LEDGER_SITE_NOBODY, LEDGER_SITE_OTHER, LEDGER_SITE_FIRST };
struct ledger_site {
    uint64_t failed; /* failed requests */
    uint32_t frame;  /* frame of the caller; LEDGER_NONE: not known */
    /* The site inside a wrapper function through which this caller reaches the allocator. 0: the caller calls
     * the allocator itself. */
    uint32_t wrapper;
    uint32_t flags; /* LEDGER_SITE_* */
    /* Not 0: the account of a tag. The record is then not a call, but counts the allocations of the tag. */
    uint32_t tag;
};
/* flag of LEDGER_SITE_NOBODY: there is no address space for the map of objects, so no object is followed */
#define LEDGER_SITE_UNFOLLOWED 1u
/* flag of a site in a wrapper function: the callers of the wrapper have separate records, if they are known */
#define LEDGER_SITE_WRAPPER 2u

/** Returns the size of a record of the table. */
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
 * Returns the live bytes in a copy of a ledger: the sum over the header and the shards, or 0 if the sum is negative.
 */
static inline uint64_t ledger_live_bytes_q(const struct ledger_header *h)
{
    uint64_t sum = h->live_bytes_q;
    for (int i = 0; i < LEDGER_SHARDS; i++)
        sum += h->shards[i].pending_bytes_q;
    return (int64_t)sum > 0 ? sum : 0;
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
