/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ROLLUP_H
#define MODEL_ROLLUP_H

/*
 * Adds up the cells of a profile into rows: by stack, function, file, directory, module, owner, thread, size or
 * process.
 *
 * Runs in: the tool.
 * Threads: pure functions of a profile, which must not change while a rollup of it is in use.
 * Owns: a rollup owns its rows and their names; paths and functions belong to the profile.
 * Invariant: the exclusive values of all rows add up to the total; in each row exclusive <= inclusive <=
 * total.
 */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/profile/frames.h"

enum rollup_group {
    ROLLUP_BY_STACK,    /* the same code, in any process and at any load address */
    ROLLUP_BY_FUNCTION, /* a function of a module; inlined functions count as called */
    ROLLUP_BY_FILE,     /* source file, or the module if the file is not known */
    /* directory of the source that requests the memory; its inclusive value has the directories below it */
    ROLLUP_BY_DIRECTORY,
    ROLLUP_BY_MODULE,
    ROLLUP_BY_OWNER, /* function of the first frame outside libc, libstdc++, allocator libraries and the agent */
    ROLLUP_BY_THREAD,
    ROLLUP_BY_SIZE,    /* powers of two */
    ROLLUP_BY_PROCESS, /* process images */
    ROLLUP_BY_CALLERS, /* a tree: a function, its callers, their callers; see `focus` */
    /* a tree: a function, its callees, and so on, up to the function that requests the memory */
    ROLLUP_BY_CALLEES,
};

enum rollup_sort {
    ROLLUP_SORT_LIVE,
    ROLLUP_SORT_PEAK,
    ROLLUP_SORT_ALLOCATED,   /* bytes */
    ROLLUP_SORT_ALLOCATIONS, /* objects */
    ROLLUP_SORT_TEMPORARY,   /* bytes */
    ROLLUP_SORT_AGE,         /* the oldest live sample */
    ROLLUP_SORT_REQUESTED,   /* bytes */
    ROLLUP_SORT_SLACK,       /* bytes */
};

enum rollup_metric {
    ROLLUP_LIVE,
    ROLLUP_PEAK, /* live when the image's heap was largest */
    ROLLUP_ALLOCATED,
    ROLLUP_TEMPORARY,
    ROLLUP_METRICS,
    /* Not estimated, but may be unknown as well. */
    ROLLUP_AGES = ROLLUP_METRICS,
    ROLLUP_REQUESTED, /* of all that was allocated: the part that was requested */
    ROLLUP_SLACK,     /* ... and the rest */
};

/* Unknown when single live samples are selected. */
#define ROLLUP_NOT_OF_SAMPLES                                                                                \
    (1u << ROLLUP_PEAK | 1u << ROLLUP_ALLOCATED | 1u << ROLLUP_TEMPORARY | 1u << ROLLUP_REQUESTED |          \
     1u << ROLLUP_SLACK)

struct rollup_value {
    struct estimate bytes, count;
};

struct rollup_values {
    struct rollup_value of[ROLLUP_METRICS];
    unsigned unknown;      /* bit 1 << metric: not known for all of its parts, so the value means nothing */
    uint64_t aged_samples; /* live samples with known ages; 0: no ages */
    uint64_t oldest_ns;    /* age at the reading, or at the end of the image */
    uint64_t median_ns;    /* half of the live bytes are at least so old */
    double requested_bytes;
};

struct rollup_row {
    char *name; /* never "" */
    /* paths of the module and the source, for functions and owners; "": unknown or without meaning */
    const char *module, *file;
    uint32_t index;  /* one of its stacks; or the thread, size class or image; else PROFILE_NONE */
    uint32_t parent; /* trees: the row above it, which precedes it; PROFILE_NONE: none */
    uint32_t depth;  /* trees: number of rows above it */
    /* `self` has the stacks in which the function, file, directory or module is innermost; in a tree, those in which
     * the path ends here. In all other groups both are equal. */
    struct rollup_values self, inclusive;
};

struct rollup_options {
    enum rollup_group group;
    enum rollup_sort sort;
    bool inclusive; /* sort by inclusive values */
    bool unsorted;  /* not of trees: the order does not matter */
    /* A pattern (base/sigsafe/pattern.h): only stacks with a function of that name count. NULL: all. A tree begins at
     * that function: at its outermost call for its callers, at its innermost call for its callees, so that a
     * recursion counts once. */
    const char *focus;
    /* Which cells count; NULL: all. */
    bool (*keep)(void *arg, const struct profile *p, uint32_t cell);
    /* Which live samples count, in cells that count; NULL: all. If it is set, live values and ages are those
     * of the selected samples, and the other metrics are unknown. */
    bool (*keep_sample)(void *arg, const struct profile *p, uint32_t sample);
    void *arg;
    /* bit 1 << metric, and of ROLLUP_AGES: not needed; the value may stay 0, which is faster */
    unsigned without;
};

struct rollup {
    const struct profile *profile; /* borrowed */
    struct rollup_options options; /* as given */
    struct rollup_values total;    /* includes what may exist in no row because nothing of it was sampled */
    struct VEC(
        struct rollup_row) rows; /* largest first; rows alike by name. A tree: each before those below it */
};

/** Never returns NULL. The profile must be valid and outlive the rollup; trees need a focus. */
struct rollup *rollup_new(const struct profile *p, const struct rollup_options *o);
/**
 * Returns a rollup by process with these options otherwise, for a view that shows only the first `n` rows.
 * The other rows, and the total, may have no values but those of the sort order. Never NULL.
 */
struct rollup *rollup_largest_processes(const struct profile *p, const struct rollup_options *like, size_t n);
void rollup_free(struct rollup *r);

/** Returns the name of a row by thread, size or process; the caller frees it. */
char *rollup_index_name(const struct profile *p, enum rollup_group group, uint32_t index);

static inline bool rollup_is_tree(enum rollup_group group)
{
    return group == ROLLUP_BY_CALLERS || group == ROLLUP_BY_CALLEES;
}
static inline bool rollup_known(const struct rollup_values *v, enum rollup_metric m)
{
    return !(v->unknown >> m & 1);
}
/** Returns the value of any metric but ROLLUP_AGES. ROLLUP_REQUESTED and ROLLUP_SLACK count all allocations. */
struct rollup_value rollup_value_of(const struct rollup_values *v, enum rollup_metric m);
/** Returns whether this order is of bytes; else it is of objects, or of ages. */
static inline bool rollup_sort_is_bytes(enum rollup_sort sort)
{
    return sort != ROLLUP_SORT_ALLOCATIONS && sort != ROLLUP_SORT_AGE;
}
/** Returns the metric whose bytes or objects determine the order; for the order by age, the metric shown with
 * it. */
enum rollup_metric rollup_sort_metric(enum rollup_sort sort);
/** Returns whether the order is possible: rows with unknown values have none. */
bool rollup_sort_known(enum rollup_sort sort, const struct rollup_values *v);
/** Returns the value that determines the order: bytes, objects or ns. */
double rollup_sort_value(enum rollup_sort sort, const struct rollup_values *v);
/** Returns true when nothing in it is an estimate. */
static inline bool rollup_exact(const struct estimate *e)
{
    return e->samples == e->exact && !(e->first.mean > 0);
}
/** Returns 1 / (1 - exp(-size / period)), and 1 when exact. Objects of size 0 count as 1 byte. */
static inline double rollup_weight(uint64_t size_bytes, uint64_t period_bytes)
{
    if (period_bytes <= 1)
        return 1;
    return -1 / expm1(-(double)(size_bytes ? size_bytes : 1) / (double)period_bytes);
}

#endif
