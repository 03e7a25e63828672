/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_PROFILE_H
#define MODEL_PROFILE_H

/*
 * A profile: values keyed by stack, thread, size class and image, with the live samples and recent frees behind them.
 * All sources end here and all views begin here. Pure data: no I/O, no clock, no globals.
 *
 * Runs in: the tool. Threads: one at a time. Owns: all it points to, until profile_free().
 *
 * Everything is an array, and everything that refers to something does so by index. Strings are interned: string 0 is
 * "". Indices are checked where data comes in (collect, store) and trusted here and in the views.
 * Invariant: profile_valid().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/vec.h"
#include "model/profile/estimate.h"

#define PROFILE_NONE      UINT32_MAX
#define PROFILE_LIFETIMES 16

/** Weighted sums over samples; see estimate.h. */
struct profile_sums {
    uint64_t samples;
    double seen_bytes; /* requested sizes of the samples; see has_requested */
    double bytes;      /* estimate of all bytes */
    double count;      /* estimate of all objects */
};

enum profile_image_state {
    PROFILE_IMAGE_RUNNING,  /* when it was read */
    PROFILE_IMAGE_EXITED,   /* its exit handlers ran */
    PROFILE_IMAGE_ENDED,    /* killed, _exit or exec */
    PROFILE_IMAGE_DETACHED, /* allium detach has ended the ledger; the process may run on */
    /* it ran when it was last seen, in a recording that was cut short. Not stored in recordings */
    PROFILE_IMAGE_CUT,
};

/** Counts of events that could not be recorded or observed. The order is that of the ledger and of the
 * recording. */
enum profile_loss {
    PROFILE_LOST_SAMPLES,
    PROFILE_LOST_LIVE,
    PROFILE_LOST_FREES_UNSEEN,
    PROFILE_LOST_STACK_CUT,
    PROFILE_LOST_STACK_BROKEN,
    PROFILE_LOST_THREADS,
    PROFILE_LOST_GROWTH,
    PROFILE_LOST_CHILDREN,
    PROFILE_FAILED_REQUESTS,
    PROFILE_INHERITED_FREES,
    PROFILE_LOSSES
};

/** One process image: a program from exec (or fork) to its end or its next exec. */
struct profile_image {
    uint64_t id; /* random, never 0 */
    /* image that it was forked from; 0: it began with exec, or the parent had no ledger */
    uint64_t parent_id;
    int32_t pid, parent_pid;  /* pid 0: the kernel, see profile_is_kernel() */
    uint32_t comm, exe, args; /* strings; args is "" when not stored */
    enum profile_image_state state;
    int32_t signal; /* the signal that ended it; 0: none, or not known */
    /* The image at taken_ns, although it was seen later. Then some live samples are missing; temporary objects,
     * lifetimes and a later peak are 0; cost and losses are those of the image's end. */
    bool past;
    uint64_t began_ns; /* CLOCK_REALTIME when its ledger began (its first sample) */
    /* CLOCK_REALTIME of this reading, or of its end; the profile has everything before that time */
    uint64_t taken_ns;
    /* CLOCK_REALTIME when its exit handlers ran; 0: they did not, or not known. Not stored in recordings */
    uint64_t ended_ns;
    uint64_t peak_ns;  /* CLOCK_REALTIME of the peak; 0: none */
    uint64_t off_ns;   /* how long sampling was off */
    double peak_bytes; /* estimate of live bytes at the peak */
    uint64_t operations_begun,
        operations_done; /* cold operations; the difference was under way when it was read */
    uint64_t cold_ns;    /* CPU time of the cold path, estimated from one in 64 */
    uint64_t ledger_bytes, ledger_limit_bytes;
    uint32_t ledger_full;    /* string: why the ledger stopped growing; "" while it can grow */
    uint64_t rss_anon_bytes; /* RssAnon at the reading, or when last seen before the end; 0: unknown */
    uint64_t torn_samples;   /* samples that changed while they were copied; left out */
    bool inconsistent;       /* the reader dropped inconsistent records */
    uint64_t losses[PROFILE_LOSSES];
};

struct profile_thread {
    uint32_t image;
    int32_t tid;       /* 0: "other", the threads that found the table full */
    uint32_t name;     /* string, "" unknown */
    uint32_t ordinal;  /* in the image */
    uint64_t first_ns; /* CLOCK_REALTIME of its first sample; 0: not known. Not stored in recordings */
};

struct profile_module {
    uint32_t path;     /* string; "" for code outside every module */
    uint32_t build_id; /* string, hex; "" none */
    uint64_t start, end, bias;
};

/** Where an image has a module: of recordings only, by image, in the order in which the modules came. */
struct profile_mapping {
    uint32_t image, module;
    uint64_t start, bias;
};

/** A name for a place in the code. */
struct profile_line {
    uint32_t function; /* string, never "" once it has a name */
    uint32_t file;     /* string, "" unknown */
    uint32_t line;     /* 0 unknown */
    bool inlined;      /* into the next line's function */
    bool wrapper;      /* a function that only passes on the requests of its callers; see wrappers.h */
    bool nameless;     /* the name is "libfoo.so+0x1234"; set only where wrappers are marked */
};

/** An address in a module. The lines are innermost first; the last one is the function that contains the
 * code. */
struct profile_location {
    uint32_t module;     /* PROFILE_NONE: code outside every module (JIT) */
    uint64_t address;    /* in the ELF file: a return address, or the exact pc */
    bool exact;          /* false: the call is one byte before */
    uint32_t first_line; /* in `lines` */
    uint32_t n_lines;    /* 0: no names yet */
};

enum profile_stack_end {
    PROFILE_STACK_WHOLE,
    PROFILE_STACK_CUT,     /* deeper than the limit */
    PROFILE_STACK_NO_CODE, /* the caller is code outside every module */
    PROFILE_STACK_NO_RULE, /* the module has no unwind rules for the address */
    PROFILE_STACK_BROKEN,
};

struct profile_stack {
    uint32_t first; /* in `stack_locations`, leaf first */
    uint32_t depth;
    enum profile_stack_end end;
};

/** The number that a stack has in the ledger of an image, and thus in the events of its trace. */
struct profile_stack_number {
    uint32_t image, number, stack;
};

/** The counters of one stack, thread, size class and period of one image. */
struct profile_cell {
    uint32_t image, stack, thread;
    uint8_t size_class;    /* sizes in [2^k, 2^(k+1)); size 0 is class 0 */
    uint64_t period_bytes; /* 1: exact */
    struct profile_sums allocated, freed, at_peak;
    uint64_t temporary_samples;
    double temporary_bytes;
    uint32_t lifetimes[PROFILE_LIFETIMES]; /* freed samples that lived less than lifetime_ns(k) */
};

/* the slack is unknown: the allocator has no malloc_usable_size() */
#define PROFILE_SLACK_UNKNOWN UINT64_MAX

struct profile_sample {
    uint32_t cell;
    uint64_t serial;                           /* unique in its image */
    uint64_t address, size_bytes, slack_bytes; /* slack: or PROFILE_SLACK_UNKNOWN */
    uint64_t born_ns;                          /* CLOCK_REALTIME */
};

struct profile_free {
    uint32_t cell; /* of the stack that allocated the object */
    uint64_t serial, address, size_bytes, born_ns, freed_ns;
    uint32_t stack;    /* stack that freed it; PROFILE_NONE: only the caller is known */
    uint32_t location; /* location of the caller that freed it; PROFILE_NONE: unknown */
    uint32_t thread;   /* thread that freed it; PROFILE_NONE: unknown */
    bool reallocated;
};

/** The state of one image at one time, for curves. */
struct profile_point {
    uint32_t image;
    uint64_t time_ns; /* CLOCK_REALTIME */
    double live_bytes, allocated_bytes;
    uint64_t rss_anon_bytes; /* 0: unknown */
};

/** An event in the course of time that belongs to no image. Not stored: whoever has read a recording may add some. */
struct profile_mark {
    uint64_t time_ns; /* CLOCK_REALTIME */
    uint32_t text;    /* string */
    bool is_bad;
};

/** A stored moment of one image: the sums of its cells are known as they were then. */
struct profile_moment {
    uint32_t image;
    uint64_t time_ns;  /* CLOCK_REALTIME */
    uint32_t first, n; /* in `moment_cells`: the cells that have changed since the image's moment before */
};
struct profile_moment_cell {
    uint32_t cell;
    struct profile_sums allocated, freed;
};

/** Processes of one program that were started without the agent. */
struct profile_unobserved {
    uint32_t program; /* string: path of the program as it was started; "": not known */
    uint32_t reason;  /* string: "is statically linked" */
    uint64_t processes;
};

/** Of a recording of the kernel: frees that are not of an object in it, and what was freed soon after its end. */
struct profile_kernel {
    bool known;
    uint32_t filter; /* text: which allocations are recorded; "": all */
    uint64_t null_frees;
    uint64_t frees_without_event; /* seen when the address was allocated again */
    /* of objects whose allocation was not seen: from before the recording, after a loss, or came without an event */
    uint64_t older_frees, frees_after_loss, unexplained_frees;
    uint64_t settled_objects, settled_bytes,
        settle_ns; /* of the live ones, freed within settle_ns after the end */
};

/** Of a span of a trace: frees in the span of objects that were allocated before it. They are in no other figure. */
struct profile_older_frees {
    uint64_t objects, bytes;
};

/** Of a trace of all events. Those that were lost count as PROFILE_LOST_SAMPLES. */
struct profile_trace {
    bool known;
    bool is_part;    /* the profile is of a moment in it, or of a span of it */
    uint32_t filter; /* text: the query that its blocks match; "": it has all */
    /* text: "counter", "none": it has no times, those of the profile are numbers of events; "every:N": most times are
     * interpolated; "": it has times. With "none" and "every:N" the order of events is not known for sure */
    uint32_t clock;
    uint64_t cut_packets;   /* at the end of a trace that was cut short */
    uint64_t unknown_frees; /* of blocks whose allocation is not in it */
    uint64_t early_frees;   /* that came before the allocation of their block, and count as after it */
    int64_t wall_step_ns;   /* by which the wall clock was set while it was recorded; its times ignore that */
    uint64_t without_stack; /* allocations with --stacks full that have only their call */
    struct profile_older_frees older;
};

struct profile {
    struct VEC(char *) strings;
    struct VEC(struct profile_image) images;
    struct VEC(struct profile_thread) threads;
    struct VEC(struct profile_module) modules;
    struct VEC(struct profile_mapping) mappings;
    struct VEC(struct profile_line) lines;
    struct VEC(struct profile_location) locations;
    struct VEC(uint32_t) stack_locations;
    struct VEC(struct profile_stack) stacks;
    struct VEC(struct profile_stack_number) stack_numbers; /* only if events of a trace have them */
    struct VEC(struct profile_cell) cells;
    struct VEC(struct profile_sample) samples;
    struct VEC(struct profile_free) frees;
    struct VEC(struct profile_point) points;
    struct VEC(struct profile_mark) marks;
    struct VEC(struct profile_moment) moments; /* by image, then by time; only if they were asked for */
    struct VEC(struct profile_moment_cell) moment_cells;
    struct VEC(struct profile_unobserved) unobserved;
    uint64_t lifetime_ns[PROFILE_LIFETIMES - 1]; /* upper bounds of all but the last class */
    uint64_t images_dropped;                     /* images of which only the number is known */
    double images_dropped_peak_bytes;            /* sum of their peaks */
    /* CPU time and highest resident memory of the process that recorded; 0: not known. */
    uint64_t recorder_cpu_ns, recorder_peak_bytes;
    struct profile_kernel kernel;
    struct profile_trace trace;
    uint64_t started_ns;   /* CLOCK_REALTIME: the zero of FILE@TIME; 0: not known */
    uint64_t taken_ns;     /* CLOCK_REALTIME of the reading */
    uint64_t period_bytes; /* period of a complete recording; 0: not known. See also the cells */
    /* Of the kernel: seen_bytes are what was requested, and bytes what was allocated for it. Else both are the same
     * where all is exact: of a program it is only known what it requested. */
    bool has_requested;
    struct map string_index;
};

/** Returns an empty profile (with string 0). Never NULL. */
struct profile *profile_new(void);
void profile_free(struct profile *p);
/** Index of the text, interned; NULL counts as "". */
uint32_t profile_string(struct profile *p, const char *text);
static inline const char *profile_text(const struct profile *p, uint32_t string)
{
    return p->strings.at[string];
}
/**
 * Appends the name of a thread within its process: "redis-server/bio_close_file". "redis-server" is the first
 * thread; "redis-server/thread" is a thread without a name.
 */
void profile_add_thread_name(struct buf *b, const struct profile *p, uint32_t thread);
/**
 * Returns the sampling period if nothing was sampled; 0: something was, or the period is not known. An image without
 * a sample has a ledger for other accounts, those of sites for example.
 */
static inline uint64_t profile_silent_period(const struct profile *p)
{
    return p->cells.len || p->images_dropped || p->unobserved.len ? 0 : p->period_bytes;
}
/** Returns whether the image is not a process but the kernel: it was recorded by `allium sys record`. */
static inline bool profile_is_kernel(const struct profile_image *i)
{
    return !i->pid;
}
/** Returns whether all images are the kernel's: its objects, and perhaps its pages. */
bool profile_is_of_kernel(const struct profile *p);
/** Returns true if every index is in range; for debug builds and for data from files. */
bool profile_valid(const struct profile *p);

/**
 * For a profile with one image, read from the ledger that it left behind: sets the times back to the image's
 * exit or, if that is not known, to the last event in the ledger.
 */
void profile_end(struct profile *p);
/** Returns the age of a live sample when its image was read, or when the image ended. */
uint64_t profile_age_ns(const struct profile *p, const struct profile_sample *s);
/** allocated - freed. */
struct profile_sums profile_live(const struct profile_cell *c);
/**
 * Returns the sums of temporary objects. A cell stores their bytes and their number of samples. The rest is
 * computed from all freed objects of the cell, which have the same size within a factor of two.
 */
struct profile_sums profile_temporary(const struct profile_cell *c);
/** Adds the sums of one cell to an estimate of bytes, of objects, or of both. */
void profile_estimate(struct estimate *bytes, struct estimate *count, const struct profile_cell *c,
                      const struct profile_sums *s);
void profile_estimate_bytes(struct estimate *e, const struct profile_cell *c, const struct profile_sums *s);
void profile_estimate_count(struct estimate *e, const struct profile_cell *c, const struct profile_sums *s);

#endif
