/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ADVICE_H
#define MODEL_ADVICE_H

/*
 * What would make the kernel need less memory: measures, each with the bytes that it saves, the formula with its
 * figures, and its price. All figures come from the input: a measure whose figures are unknown is not made.
 *
 * Runs in: the tool. Threads: pure. Owns: the input owns its lists and texts until advice_input_release(), the advice
 * its measures until advice_release().
 * Invariant: low <= high in each measure; the total counts no byte twice.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "base/vec.h"

/* ---- input ---- */

/** A slab cache, as its attributes in /sys/kernel/slab show it. */
struct advice_cache {
    char *name;
    char *aliases;         /* names of caches merged into it, separated by blanks; NULL: none */
    uint64_t object_bytes; /* from one object to the next */
    uint64_t align;        /* of objects; at least 1 */
    uint64_t per_slab;     /* objects in a slab, at least 1 */
    uint64_t slab_bytes;
    uint64_t slabs, room, used; /* of objects: `used` includes those that a CPU keeps ready */
    /* slabs of the nodes' lists of partly filled slabs, and the objects in use in them */
    uint64_t partial, partial_used;
    uint64_t cpu_slabs;         /* slabs that CPUs work on or keep; the kernel counts them as full */
    uint64_t cpu_partial_slabs; /* of these, the partly filled ones that CPUs keep */
    uint64_t cpu_partial;       /* the setting */
    uint64_t min_partial;       /* empty slabs that each node keeps */
    uint64_t nodes;
    uint64_t sheaf_objects; /* free objects that may lie in sheaves, and count as used; at most */
    unsigned order;
    bool reclaimable; /* memory pressure empties it */
};

/** A call that allocates, and its live objects at the end of a capture. */
struct advice_call {
    char *name; /* "alloc_pipe_info+0x4f [module]" */
    char *file; /* "fs/pipe.c"; NULL: not known */
    uint64_t live_bytes, live_objects;
};

/** Live objects of a call that have one size. */
struct advice_size {
    size_t call;
    uint64_t requested_bytes, object_bytes; /* of each object */
    uint64_t live_objects;
    bool pages; /* the object is made of whole pages, and not of a bucket of kmalloc() */
};

/** A hash table that the kernel made when it booted: "Dentry cache hash table entries: 262144 (order: 9, ...)". */
struct advice_table {
    char *name;
    uint64_t entries, bytes;
};

/** An option of the configuration that is set, and what the kernel's Makefiles build for it alone. */
struct advice_option {
    char *name;               /* "CONFIG_EXT4_FS" */
    bool module;              /* =m */
    struct VEC(char *) paths; /* "fs/ext4/", "fs/ext4/acl.c" */
    uint64_t text_bytes;      /* of its object files; 0: not known */
};

struct advice_module {
    char *name;
    uint64_t bytes, users;
    bool permanent;
};

/** A figure that may be unknown. */
struct advice_figure {
    bool known;
    uint64_t value;
};

struct advice_input {
    uint64_t page_bytes;
    struct VEC(struct advice_cache) caches;
    struct VEC(struct advice_call) calls;
    struct map call_index; /* by name; for advice_take_call() */
    struct VEC(struct advice_size) sizes;
    struct VEC(struct advice_table) tables;
    struct VEC(struct advice_option) options;
    struct map option_index; /* by name; for makefile_parse() */
    struct VEC(struct advice_module) modules;
    bool has_calls, has_sizes; /* there is a capture */
    bool lossy;                /* events of the capture were lost: objects that count as live may be gone */
    bool has_log, has_modules, has_config, has_source;
    unsigned major, minor;                                  /* of the kernel's release; 0: not known */
    uint64_t cpus;                                          /* 0: not known */
    struct advice_figure dentries, dentries_unused, inodes; /* the most that was seen; unused: the latest */
    /* the log buffer: of its text, and with what describes it; made at boot, or part of the kernel's image */
    struct advice_figure log_data, log_whole;
    struct advice_figure log_static; /* the size that the configuration gives it */
    struct advice_figure log_boot;   /* the text that the kernel wrote while it booted */
    bool log_allocated;
    uint64_t log_option_bytes; /* of log_buf_len= on the command line; 0: none */
    struct advice_figure huge_free, huge_reserved, huge_bytes; /* huge_bytes: of one page */
    struct advice_figure crash_bytes, cma_bytes, swiotlb_bytes;
    struct advice_figure kfence_bytes, kfence_objects; /* of its pool */
    struct advice_figure memory_bytes;                 /* MemTotal */
};

struct memory_state;

/** Takes the slab caches, CPUs and the size of a page of a state. Caches whose attributes are not all known are left
 * out. */
void advice_take_memory(struct advice_input *in, const struct memory_state *s);
/** Returns the index of the call of that name, which is added if it is new. */
size_t advice_take_call(struct advice_input *in, const char *name, const char *file);
/** Returns whether the file is built for the option alone. */
bool advice_option_brings(const struct advice_option *o, const char *file);
void advice_input_release(struct advice_input *in);

/* ---- output ---- */

enum advice_kind {
    ADVICE_BUCKET, /* objects that are a few bytes too large for a bucket, or need a cache of their own */
    ADVICE_SHRINK, /* free slabs */
    ADVICE_TAIL,   /* objects that are a few bytes too large for one more in each slab */
    ADVICE_ORDER,  /* slabs that are too large */
    ADVICE_CPU_PARTIAL, /* partly filled slabs that CPUs keep */
    ADVICE_RECLAIM,     /* caches that memory pressure empties */
    ADVICE_TABLE,       /* tables that are sized at boot */
    ADVICE_LOG,
    ADVICE_CONFIG,
    ADVICE_MODULE,
    ADVICE_RESERVATION,
    ADVICE_KINDS,
};

/** Returns "bucket", "free_slabs" and so on. */
const char *advice_kind_name(enum advice_kind kind);

#define ADVICE_NONE SIZE_MAX

struct advice_measure {
    enum advice_kind kind;
    int64_t low_bytes; /* saved; negative: it may cost so much instead */
    uint64_t high_bytes;
    char *change; /* what to do: a command, a parameter, an option, a line of source */
    char *formula;
    char *cost;
    struct VEC(char *) rows; /* what it is derived from, a line each */
    bool reclaimable;        /* memory pressure empties it anyhow; not in the total */
    bool counted;            /* in the total */
    size_t instead_of;       /* the index of a larger measure that excludes this one; ADVICE_NONE: none */
    /* what its bytes belong to: measures that have one of these in common exclude one another */
    struct VEC(size_t) claims;
};

struct advice {
    struct VEC(struct advice_measure) measures; /* the largest first */
    struct VEC(char *) unknown; /* what could not be judged, and what to do about it; whole sentences */
    int64_t low_bytes;          /* of those that are counted */
    uint64_t high_bytes;
};

void advice_find(struct advice *a, const struct advice_input *in);
void advice_release(struct advice *a);

#endif
