/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ROLLUP_H
#define MODEL_ROLLUP_H

/*
 * From a profile to rows: its cells added up by stack, function, file, module, owner, thread, size or process. And the
 * frames of a stack as people see them: inlined calls one by one, the agent's own left out, the end named.
 *
 * Runs in: the tool. Threads: pure functions of a profile, which must not change while a rollup of it is in use.
 * Owns: a rollup owns its rows and their names; paths and functions belong to the profile.
 * Invariant: the exclusive values of all rows add up to the total; in each row exclusive <= inclusive <= total.
 */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "model/profile.h"

#define ROLLUP_NAME_BYTES 320 /* a name made up for code without one */

enum rollup_group {
    ROLLUP_BY_STACK,    /* same code, whatever process ran it and wherever it was loaded */
    ROLLUP_BY_FUNCTION, /* of a module; inlined functions count as called */
    ROLLUP_BY_FILE,     /* source file; the module where it is not known */
    ROLLUP_BY_MODULE,
    ROLLUP_BY_OWNER, /* function of the first frame outside libc, libstdc++, allocator libraries and the agent */
    ROLLUP_BY_THREAD,
    ROLLUP_BY_SIZE,    /* powers of two */
    ROLLUP_BY_PROCESS, /* process images */
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
    ROLLUP_METRICS
};

struct rollup_value {
    struct estimate bytes, count;
};

struct rollup_values {
    struct rollup_value of[ROLLUP_METRICS];
    uint64_t aged_samples; /* live samples behind the ages; 0: no ages */
    uint64_t oldest_ns;    /* age when the profile was taken */
    uint64_t median_ns;    /* half of the live bytes are at least that old */
};

struct rollup_row {
    char *name;                /* never "" */
    const char *module, *file; /* paths, of functions and owners; "" unknown or of no meaning */
    uint32_t index;            /* one of its stacks, the thread, size class or image; else PROFILE_NONE */
    struct rollup_values self, inclusive; /* self: exclusive, where it is the innermost; the same for all but
                                           * functions, files and modules */
};

struct rollup_options {
    enum rollup_group group;
    enum rollup_sort sort;
    bool inclusive; /* sort by inclusive values */
    /* Which cells count. NULL: all. */
    bool (*keep)(void *arg, const struct profile *p, uint32_t cell);
    /* Which live samples count, of cells that do. Not NULL: live values and ages are of these, and the other metrics
     * are not known (all zero). */
    bool (*keep_sample)(void *arg, const struct profile *p, uint32_t sample);
    void *arg;
};

struct rollup {
    const struct profile *profile; /* borrowed */
    struct rollup_options options; /* as given */
    struct rollup_values total;
    struct VEC(struct rollup_row) rows; /* largest first; rows alike by name */
};

/** Never NULL. The profile must be valid and outlive it. */
struct rollup *rollup_new(const struct profile *p, const struct rollup_options *o);
void rollup_free(struct rollup *r);

/** What the sort order goes by, for the rows' values chosen by `inclusive`: bytes, objects or ns. */
double rollup_sort_value(enum rollup_sort sort, const struct rollup_values *v);
/** A frame as people see it: one function, at most one line of source. */
struct rollup_frame {
    uint32_t location;          /* PROFILE_NONE: no code, but where the stack ends: "[cut]" */
    uint32_t line;              /* in the profile's `lines`; PROFILE_NONE: not named */
    enum profile_stack_end end; /* of such a marker; WHOLE: there was no frame at all */
};
struct rollup_frames VEC(struct rollup_frame);

/**
 * Replaces the content of `out` by the stack's frames, leaf first, inlined functions before those they are inlined into.
 * The agent's frames at the leaf are left out. At least one: a stack that did not end whole has a marker at its root.
 */
void rollup_frames(struct rollup_frames *out, const struct profile *p, uint32_t stack);
/** "main", "libfoo.so+0x1234", "[JIT or unknown code]", "[cut]". Of the profile, or in `scratch`. */
const char *rollup_frame_function(const struct profile *p, const struct rollup_frame *f,
                                  char scratch[static ROLLUP_NAME_BYTES]);
/**
 * For each location of the profile, the number of the first one that is the same code (module's path and build id,
 * address), also in another process. A new array, which the caller frees.
 */
uint32_t *rollup_same_locations(const struct profile *p);

/** What follows the last slash. */
static inline const char *rollup_basename(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/** Paths of a frame's source and module, "" unknown; its line, 0 unknown; whether it is part of the next frame's code. */
static inline const char *rollup_frame_file(const struct profile *p, const struct rollup_frame *f)
{
    return f->line == PROFILE_NONE ? "" : profile_text(p, p->lines.at[f->line].file);
}
static inline const char *rollup_location_module(const struct profile *p, uint32_t location)
{
    uint32_t module = location == PROFILE_NONE ? PROFILE_NONE : p->locations.at[location].module;
    return module == PROFILE_NONE ? "" : profile_text(p, p->modules.at[module].path);
}
static inline const char *rollup_frame_module(const struct profile *p, const struct rollup_frame *f)
{
    return rollup_location_module(p, f->location);
}
static inline uint32_t rollup_frame_line(const struct profile *p, const struct rollup_frame *f)
{
    return f->line == PROFILE_NONE ? 0 : p->lines.at[f->line].line;
}
static inline bool rollup_frame_inlined(const struct profile *p, const struct rollup_frame *f)
{
    return f->line != PROFILE_NONE && p->lines.at[f->line].inlined;
}

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
