/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ROLLUP_H
#define MODEL_ROLLUP_H

/*
 * From a profile to rows: its cells added up by stack, function, file, module, owner, thread, size or process.
 *
 * Runs in: the tool. Threads: pure functions of a profile, which must not change while a rollup of it is in use.
 * Owns: a rollup owns its rows and their names; paths and functions belong to the profile.
 * Invariant: the exclusive values of all rows add up to the total; in each row exclusive <= inclusive <= total.
 */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/profile/frames.h"

enum rollup_group {
    ROLLUP_BY_STACK,    /* same code, whatever process ran it and wherever it was loaded */
    ROLLUP_BY_FUNCTION, /* of a module; inlined functions count as called */
    ROLLUP_BY_FILE,     /* source file; the module where it is not known */
    ROLLUP_BY_MODULE,
    ROLLUP_BY_OWNER, /* function of the first frame outside libc, libstdc++, allocator libraries and the agent */
    ROLLUP_BY_THREAD,
    ROLLUP_BY_SIZE,    /* powers of two */
    ROLLUP_BY_PROCESS, /* process images */
    ROLLUP_BY_CALLERS, /* a tree: a function, those that called it, those that called them; see `focus` */
    ROLLUP_BY_CALLEES, /* a tree: a function, those that it called, and so on, as far as it was them who asked */
};

enum rollup_sort {
    ROLLUP_SORT_LIVE,
    ROLLUP_SORT_PEAK,
    ROLLUP_SORT_ALLOCATED,   /* bytes */
    ROLLUP_SORT_ALLOCATIONS, /* objects */
    ROLLUP_SORT_TEMPORARY,   /* bytes */
    ROLLUP_SORT_AGE,         /* the oldest live sample */
};

enum rollup_metric {
    ROLLUP_LIVE,
    ROLLUP_PEAK, /* what was live when the image it belongs to held most */
    ROLLUP_ALLOCATED,
    ROLLUP_TEMPORARY,
    ROLLUP_METRICS,
    ROLLUP_AGES = ROLLUP_METRICS, /* not estimated, but may be unknown as well */
};

/* Unknown when single live samples are chosen. */
#define ROLLUP_NOT_OF_SAMPLES (1u << ROLLUP_PEAK | 1u << ROLLUP_ALLOCATED | 1u << ROLLUP_TEMPORARY)

struct rollup_value {
    struct estimate bytes, count;
};

struct rollup_values {
    struct rollup_value of[ROLLUP_METRICS];
    unsigned unknown;      /* bit 1 << metric: not known of all that is in it, so its value means nothing */
    uint64_t aged_samples; /* live samples behind the ages; 0: no ages */
    uint64_t oldest_ns;    /* age when it was read, or ended */
    uint64_t median_ns;    /* half of the live bytes are at least that old */
};

struct rollup_row {
    char *name;                /* never "" */
    const char *module, *file; /* paths, of functions and owners; "" unknown or of no meaning */
    uint32_t index;            /* one of its stacks, the thread, size class or image; else PROFILE_NONE */
    uint32_t parent;           /* of a tree: the row above it, which comes before it; PROFILE_NONE: none */
    uint32_t depth;            /* of a tree: how many rows are above it */
    struct rollup_values self, inclusive; /* self: exclusive, where it is the innermost; the same for all but
                                           * functions, files, modules and trees, where it is the way's end */
};

struct rollup_options {
    enum rollup_group group;
    enum rollup_sort sort;
    bool inclusive; /* sort by inclusive values */
    const char *
        /* a pattern (base/sigsafe/pattern.h): only stacks count that have a function of that name. NULL: all. Trees
         * begin there: with its outermost call for its callers, with the innermost for its callees, so that a
         * recursion counts once */
        focus;
    /* Which cells count. NULL: all. */
    bool (*keep)(void *arg, const struct profile *p, uint32_t cell);
    /* Which live samples count, of cells that do. Not NULL: live values and ages are of these, and the other metrics
     * are not known. */
    bool (*keep_sample)(void *arg, const struct profile *p, uint32_t sample);
    void *arg;
    unsigned
        without; /* bit 1 << metric, and of ROLLUP_AGES: it is not needed, and may stay 0, which is faster */
};

struct rollup {
    const struct profile *profile; /* borrowed */
    struct rollup_options options; /* as given */
    struct rollup_values total; /* with what may be there and is in no row, since nothing of it was sampled */
    struct VEC(
        struct rollup_row) rows; /* largest first; rows alike by name. A tree: each before those below it */
};

/** Never NULL. The profile must be valid and outlive it; trees need a focus. */
struct rollup *rollup_new(const struct profile *p, const struct rollup_options *o);
/**
 * The rollup by process that is like these options but for the group, of which only the first `n` rows are to be seen:
 * of the others, and of the total, there may be nothing but what the order goes by. Never NULL.
 */
struct rollup *rollup_largest_processes(const struct profile *p, const struct rollup_options *like, size_t n);
void rollup_free(struct rollup *r);

static inline bool rollup_is_tree(enum rollup_group group)
{
    return group == ROLLUP_BY_CALLERS || group == ROLLUP_BY_CALLEES;
}
static inline bool rollup_known(const struct rollup_values *v, enum rollup_metric m)
{
    return !(v->unknown >> m & 1);
}
/** The metric whose bytes or objects an order goes by, or, by age, those shown with it. */
enum rollup_metric rollup_sort_metric(enum rollup_sort sort);
/** Whether there is such an order: rows whose values are not known have none. */
bool rollup_sort_known(enum rollup_sort sort, const struct rollup_values *v);
/** What the sort order goes by, for the rows' values chosen by `inclusive`: bytes, objects or ns. */
double rollup_sort_value(enum rollup_sort sort, const struct rollup_values *v);
/** True when nothing about it was estimated. */
static inline bool rollup_exact(const struct estimate *e)
{
    return e->samples == e->exact && !(e->first.mean > 0);
}
/** 1 / (1 - exp(-size / period)); 1 when exact. Objects of no size count as one byte. */
static inline double rollup_weight(uint64_t size_bytes, uint64_t period_bytes)
{
    if (period_bytes <= 1)
        return 1;
    return -1 / expm1(-(double)(size_bytes ? size_bytes : 1) / (double)period_bytes);
}

#endif
