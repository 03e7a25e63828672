/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_LEDGER_H
#define WIRE_LEDGER_H

/*
 * The ledger's layout: the heap profile of one process image as a file of shared memory. The target writes it, any
 * reader may copy it at any time. This is the layout only; ledger_make.h makes one, ledger_grow.h lets it grow.
 *
 * Runs in: target (writer) and tool (reader). Threads: any writer; counters change by single atomic adds.
 *
 * A file is a header of one page and LEDGER_TABLES regions at fixed offsets, each an array of records that grows at its
 * end. The file is sparse: its apparent size is address space, `ready_bytes` of each region is what it really holds.
 *
 * Consistency: counters are words, each right by itself; sums taken over several of them may differ by the operations
 * that were under way. A sample is whole if its `check` fits its `serial`, in two copies taken one after the other.
 *
 * Invariant: nothing a reader finds here may be trusted. An index, a length or an offset is checked at every use.
 */

#include <stdint.h>

#include "wire/control_page.h"
#include "wire/ledger_accounts.h"

#define LEDGER_MAGIC        0x3152454744454c41u /* "ALEDGER1", little endian */
#define LEDGER_VERSION      7u                  /* another layout, or another meaning, is another one */
#define LEDGER_HEADER_BYTES 4096u
#define LEDGER_PAGE_BYTES   4096u
#define LEDGER_NONE         UINT32_MAX

/* What a name in the ledger's directory ends with; the name before it is PID-IMAGE (decimal, 16 hex digits). */
#define LEDGER_SUFFIX         ".ledger"
#define LEDGER_CONTROL_SUFFIX ".control"
#define LEDGER_TAGS_SUFFIX                                                                                   \
    ".tags" /* of accounts of tags alone, by liballium.so in a process without the agent */
/* What a recorder's own directory begins with. It lies in its user's directory of ledgers; see ledger_make.h. */
#define LEDGER_RUN_PREFIX "run-"

/*
 * As they lie in the file: each refers only to those before it, which readers rely on; and small ones first, so that
 * what is there from the beginning lies close together.
 */
enum ledger_table {
    LEDGER_PERIODS,      /* struct ledger_period */
    LEDGER_THREADS,      /* struct ledger_thread; record 0 is "other" */
    LEDGER_STRINGS,      /* bytes: NUL-terminated */
    LEDGER_MODULES,      /* struct ledger_module */
    LEDGER_FRAMES,       /* uint64_t, see LEDGER_FRAME_* */
    LEDGER_STACK_FRAMES, /* uint32_t: indices of frames, leaf first */
    LEDGER_STACKS,       /* struct ledger_stack */
    LEDGER_CELLS,        /* struct ledger_cell */
    LEDGER_SAMPLES,      /* struct ledger_sample */
    LEDGER_FREES,        /* struct ledger_free: rings, one for each shard, one behind the other */
    LEDGER_ACCOUNTS,     /* struct ledger_accounts; account 0 is none */
    LEDGER_TAGS,         /* struct ledger_tag */
    LEDGER_TAG_STACKS,   /* struct ledger_tag_stack */
    LEDGER_LATENCIES,    /* struct ledger_latency */
    LEDGER_SITE_SUMS,    /* struct ledger_site_sums: of 64 sites each */
    LEDGER_SITES,        /* struct ledger_site; in processes that were started so */
    LEDGER_TABLES
};

struct ledger_region {
    uint64_t offset;       /* of the first record in the file */
    uint64_t limit_bytes;  /* address space set aside */
    uint64_t ready_bytes;  /* backed by memory; grows */
    uint64_t used;         /* records ever asked for; may exceed what fits */
    uint32_t record_bytes; /* size of a record */
    uint32_t pad;
};

/*
 * Weighted sums of samples. `seen` and `samples` are plain; the weighted ones have LEDGER_Q fraction bits and are
 * unbiased estimates of what all allocations would have added up to.
 */
#define LEDGER_Q 8
struct ledger_sums {
    uint64_t samples;
    uint64_t seen_bytes; /* requested sizes of the samples */
    uint64_t bytes_q;
    uint64_t count_q;
};

/* What could not be kept or seen. Each is a count of events. */
enum ledger_loss {
    LEDGER_LOST_SAMPLES, /* sampled, but no room for its stack or counters: missing everywhere */
    LEDGER_LOST_LIVE,    /* counted as allocated, but no room to follow it: missing among the live ones */
    LEDGER_LOST_FREES_UNSEEN, /* an address came back from malloc while we held it live: its free went past us */
    LEDGER_LOST_STACK_CUT,    /* deeper than is kept */
    LEDGER_LOST_STACK_BROKEN, /* the walk met code without rules, or a stack that does not add up */
    LEDGER_LOST_THREADS,      /* samples of threads beyond the table: under "other" */
    LEDGER_LOST_GROWTH,       /* refused attempts to grow the ledger */
    LEDGER_LOST_CHILDREN, /* programs started without the agent that could not be noted (unobserved_list.h) */
    LEDGER_FAILED_REQUESTS,   /* requests that failed, as far as they came by the cold path */
    LEDGER_INHERITED_FREES,   /* sampled objects of the parent that this fork child freed */
    LEDGER_LOST_TAGS,         /* tags without an account */
    LEDGER_LOST_TAGGED,       /* objects of tags that are charged to nobody */
    LEDGER_LOST_TAGGED_FREES, /* objects of tags whose address came again: their free went past us */
    LEDGER_LOST_DETAILS,      /* calls of tags whose stack or time found no room */
    LEDGER_LOST_TAG_VERSIONS, /* tags of another ALLIUM_TAG_VERSION: they are not counted */
    LEDGER_LOSSES
};

/* Why the ledger stopped growing, first reason met. */
enum ledger_full {
    LEDGER_NOT_FULL,
    LEDGER_FULL_LIMIT,      /* its own hard limit */
    LEDGER_FULL_FILESYSTEM, /* tmpfs nearly full */
    LEDGER_FULL_CGROUP,     /* memory cgroup nearly full */
    LEDGER_FULL_SECCOMP,    /* the process entered seccomp: no system call may be added */
    LEDGER_FULL_REFUSED,    /* the kernel said no */
    LEDGER_FULL_OWN_LIMIT, /* too little of a limit of the program itself (RLIMIT_AS, RLIMIT_DATA) would be left */
    LEDGER_FULL_SHARE, /* the ledger has the share of a memory cgroup's limit that it may have */
};

/* The ledger takes at most one part in so many of a memory cgroup's limit: the program may need the rest. */
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
 * What every operation counts, spread over some cache lines so that threads seldom share one. Sums over all shards
 * are what is meant; so that the peak need not be looked for at every operation, live bytes are handed on to the header
 * in lots (at once while the process has one thread).
 */
#define LEDGER_SHARDS 24
#define LEDGER_SHARDS_OWNED                                                                                  \
    16 /* the first ones belong to one thread each, so that their counters need no lock */
#define LEDGER_SERIAL_SHIFT 48 /* a serial is shard << 48 | count */
struct ledger_shard {
    uint64_t begun, done; /* operations on samples */
    uint64_t cold_ticks;  /* time spent in them: an estimate, one in 64 is timed */
    uint64_t allocated_bytes_q;
    uint64_t pending_bytes_q; /* signed: not yet in the header's live_bytes_q */
    uint64_t serials;
    uint64_t vacant;             /* tag << 32 | index of the first vacant sample, LEDGER_NONE: none */
    uint64_t next_free;          /* in this shard's share of the ring of frees */
} __attribute__((aligned(128))); /* two lines: processors fetch them in pairs */

struct ledger_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint64_t image_id; /* random; survives neither exec nor fork */
    int32_t pid;       /* in the target's own PID namespace */
    int32_t parent_pid;
    uint64_t parent_image_id; /* of the image this one was forked from; 0: began with exec */
    uint64_t forked_ticks;    /* when this image began, as far as it knows; 0 with exec */
    uint32_t clock;           /* enum ledger_clock */
    uint32_t state;           /* enum ledger_state */
    uint64_t began_ticks, began_monotonic_ns, began_realtime_ns; /* one moment, on three clocks */
    uint64_t ended_ticks;          /* when it exited; of no meaning before `state` says so */
    uint64_t off_ticks;            /* for so long sampling was off, without the time since off_since_ticks */
    uint64_t off_since_ticks;      /* 0: it is on */
    uint64_t map_start, map_bytes; /* where the target maps this header: tells whether the image still runs */
    uint64_t
        objects; /* in the target: its map of objects, by site, see wire/object_map_layout.h; 0: none yet */
    uint64_t tagged;      /* the same, by tag */
    uint64_t ranges;      /* in the target: its tree of mappings, see wire/object_map_layout.h; 0: none yet */
    uint64_t limit_bytes; /* hard limit of all ready_bytes together */
    uint64_t ready_bytes; /* header included */
    uint32_t full;        /* enum ledger_full */
    uint32_t exe;         /* string: path of the executable */
    char comm[16];
    uint64_t seed;
    struct ledger_region regions[LEDGER_TABLES];

    /* Changing from here on. */
    uint64_t live_bytes_q __attribute__((aligned(64))); /* without what the shards have pending */
    uint64_t peak_bytes_q;
    uint64_t peak_epoch; /* counts the moments at which live_bytes_q stood at a new height */
    uint64_t peak_ticks;
    uint64_t losses[LEDGER_LOSSES];
    struct ledger_shard shards[LEDGER_SHARDS];
};
_Static_assert(sizeof(struct ledger_header) <= LEDGER_HEADER_BYTES, "the header is one page");

#define LEDGER_BUILD_ID_BYTES 20
struct ledger_module {
    uint64_t start, end; /* addresses it covered */
    uint64_t bias;       /* run-time address - address in the ELF file */
    uint64_t seen_ticks; /* when the agent first met it */
    uint32_t path;       /* string, as the target's loader knows it */
    uint8_t build_id_len;
    uint8_t build_id[LEDGER_BUILD_ID_BYTES];
    uint8_t pad[7];
};

/*
 * A frame: which module (its generation: a library loaded again is another record) and the address in its ELF file.
 * Callers are named by their return address: the call is one byte before. An interrupted pc is exact.
 */
#define LEDGER_FRAME_EXACT        (1ull << 63)
#define LEDGER_FRAME_MODULE_SHIFT 48
#define LEDGER_FRAME_MODULE_MASK  0x7fffu
#define LEDGER_FRAME_OFFSET_MASK  ((1ull << 48) - 1)
#define LEDGER_MODULE_UNKNOWN     0x7fffu /* code outside every module (JIT): offset is 0 */

enum ledger_stack_end {
    LEDGER_STACK_WHOLE,
    LEDGER_STACK_CUT,     /* deeper than is kept */
    LEDGER_STACK_NO_CODE, /* went on in code outside every module (JIT) */
    LEDGER_STACK_NO_RULE, /* the module has no rule for that pc */
    LEDGER_STACK_BROKEN,  /* the frames do not add up */
};

struct ledger_stack {
    uint32_t hash;
    uint32_t first; /* index into LEDGER_STACK_FRAMES */
    uint16_t depth;
    uint8_t end; /* enum ledger_stack_end */
    uint8_t pad[5];
};

struct ledger_thread {
    int32_t tid; /* 0: a thread that could not be asked */
    uint32_t ordinal;
    uint64_t first_ticks;
    char name[16]; /* at its first sample */
};

struct ledger_period {
    uint64_t period_bytes; /* 1: every allocation, exact */
    uint64_t since_ticks;
};

#define LEDGER_LIFETIMES 16
/* Lifetime class k holds samples that lived less than 2^(2k+14) ticks, the last one all others. */
#define LEDGER_LIFETIME_FIRST_SHIFT 14

/* The books of one stack in one thread, one size class (2^k <= size < 2^(k+1); 0 is class 0) and one period. */
struct ledger_cell {
    uint32_t stack;
    uint16_t thread;
    uint8_t size_class;
    uint8_t period;
    uint64_t
        peak_epoch; /* `at_peak` is of this epoch; behind the header's: what is live now was live at the peak */
    struct ledger_sums allocated;
    uint64_t temporary_samples;
    uint64_t temporary_bytes_q;
    struct ledger_sums freed;
    uint32_t lifetimes[LEDGER_LIFETIMES];
#define LEDGER_SLACK_UNKNOWN UINT32_MAX /* the allocator has no malloc_usable_size() */

    /* freed samples by age */
    struct ledger_sums at_peak;
};

struct ledger_sample {
    uint64_t address; /* 0: vacant */
    uint64_t serial;
    uint64_t size_bytes; /* as requested */
    uint64_t born_ticks;
    uint32_t cell;
    uint32_t slack_bytes; /* usable - requested, or LEDGER_SLACK_UNKNOWN */
    uint32_t next;        /* in the list of vacant ones */
    uint32_t check;       /* ledger_check(serial) */
};

struct ledger_free {
    uint64_t number; /* in its shard, + 1; 0: never written; written last */
    uint64_t serial; /* of the sample */
    uint64_t address;
    uint64_t size_bytes;
    uint64_t born_ticks, freed_ticks;
    uint32_t cell;   /* who had allocated it */
    uint32_t stack;  /* who freed it; LEDGER_NONE: only the caller is known */
    uint32_t caller; /* frame of the call that freed it; LEDGER_NONE: unknown */
    uint16_t thread; /* that freed it */
    uint8_t reallocated;
    uint8_t pad;
};

/* Calls of a tag, or of a call site, that came from one stack, while that was asked for. */
#define LEDGER_STACK_OF_SITE (1u << 31)
struct ledger_tag_stack {
    uint32_t account; /* of the tag; the site's number with LEDGER_STACK_OF_SITE; 0: being entered */
    uint32_t stack;
    uint64_t calls, bytes;
};

/*
 * How long calls of a tag took, while that was asked for. Classes are exact below 8 ns; then each power of two has
 * eight, so that a time is known to an eighth.
 */
#define LEDGER_LATENCY_CLASSES 288u /* to 2^38 ns, some four and a half minutes; the last one all others */
struct ledger_latency {
    uint32_t account; /* 0: being entered */
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

/** The least time of a class. */
static inline uint64_t ledger_latency_least(uint32_t class)
{
    return class < 8 ? class : (8 + (uint64_t) class % 8) << (class / 8 - 1);
}

/*
 * The account of a call site: what it has made, what of that is gone, whoever freed it, and what was freed by the site
 * itself, whoever had made it. Shards as above; a site's words in one of them are a cache line.
 */
#define LEDGER_SITES_TOGETHER 64u
struct ledger_site_words {
    uint64_t made_calls, made_bytes, made_usable_bytes;
    uint64_t gone_calls, gone_bytes, gone_usable_bytes;
    uint64_t freed_calls, freed_bytes;
} __attribute__((aligned(64)));
struct ledger_site_sums {
    struct ledger_site_words words[LEDGER_ACCOUNT_SHARDS][LEDGER_SITES_TOGETHER];
};

/*
 * A call instruction that reaches the allocator. The first records are no sites: LEDGER_SITE_NOBODY's sums are objects
 * that could not be followed (made), objects whose address came again before their free was seen (gone), and frees of
 * objects that nobody follows (freed); LEDGER_SITE_OTHER is all sites that have no record of their own.
 */
enum { LEDGER_SITE_NOBODY, LEDGER_SITE_OTHER, LEDGER_SITE_FIRST };
struct ledger_site {
    uint64_t failed; /* requests */
    uint32_t frame;  /* of the caller; LEDGER_NONE: not known */
    uint32_t
        wrapper; /* the site within a wrapper through which it is the caller; 0: it calls the allocator itself */
    uint32_t flags; /* LEDGER_SITE_* */
    uint32_t
        tag; /* its account: it is no call but what the tag has made, of which no call has any; 0: it is a call */
};
#define LEDGER_SITE_UNFOLLOWED 1u /* of NOBODY: there is no address space for it, no object is followed */
#define LEDGER_SITE_WRAPPER    2u /* its callers have sites of their own, as far as they are known */

/** Size of a table's records. */
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

/** Sum of live bytes, of operations and so on, over the header of a copy. */
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
