/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_KERNEL_CAPTURE_H
#define SYS_KERNEL_CAPTURE_H

/*
 * Accounts of the kernel's objects with the names of their code, whatever they come from, as rows of `allium sys kmem`
 * and as a profile.
 *
 * Runs in: the tool. Threads: one. Owns: the accounts, until kernel_capture_release().
 */

#include <stdbool.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/vec.h"
#include "bpf/sys.h"
#include "model/kernel/kmem_accounts.h"
#include "model/kernel/page_accounts.h"
#include "model/profile/profile.h"
#include "model/table/table.h"

struct capture_span;
struct symbol_frame;
struct symbol_frames;
struct wrappers;

/** Behind a call, and a function, that only allocates for its callers, if these are not known. */
#define KERNEL_CAPTURE_HELPER " (helper)"

/** How calls are named. A call is what its events have as call_site: an address, or a number of the importer. */
struct kernel_code_names {
    void *arg;
    /** Appends "ext4_alloc_inode+0x1f [ext4]". */
    void (*add_call)(void *arg, struct buf *b, uint64_t call);
    /** Appends "ext4_alloc_inode [ext4]". */
    void (*add_function)(void *arg, struct buf *b, uint64_t call);
    /** Returns a number that is the same for this code in every capture; 0: not known. */
    uint64_t (*number)(void *arg, uint64_t call);
    /** Appends "GFP_KERNEL|__GFP_ZERO"; NULL: events do not tell the flags. */
    void (*add_gfp)(void *arg, struct buf *b, uint64_t gfp);
    /** Returns the name of a migrate type of pages, or NULL: it has none; NULL: only numbers are known. */
    const char *(*migrate_type)(void *arg, uint32_t type);
    /** Returns the path of the control group of a process, or NULL; NULL: they are not known. */
    const char *(*cgroup)(void *arg, int32_t process);
    /* The next three are about files of the source. They are NULL, all three, if it is not known. */
    /** Appends "fs/ext4/super.c", or "[unknown] ext4_alloc_inode [ext4]". */
    void (*add_file)(void *arg, struct buf *b, uint64_t call);
    /** Fills `out` as resolver_kernel_frames() does. */
    bool (*frames)(void *arg, uint64_t call, struct symbol_frames *out);
    const char *(*frame_file)(void *arg, const struct symbol_frame *f);
};

#define KERNEL_CAPTURE_NAME 24 /* bytes of "(kmalloc 192)" */

struct kernel_capture_cell {
    uint64_t call_site;
    uint32_t stack, size_class;
};

/* Without a stack, flags and program say something of who takes the pages; with one, they are 0. */
struct kernel_capture_page_cell {
    uint64_t gfp;
    uint32_t stack, comm, order;
    uint32_t unused;
};

struct kernel_capture {
    struct kmem_accounts *accounts;
    struct capture_span *span;   /* rows are of what came since then; NULL: of everything */
    struct page_accounts *pages; /* NULL: pages were not recorded; belongs to the capture */
    struct kernel_code_names names;
    uint64_t page_bytes; /* of the machine; at first of the one that runs here */
    /* Objects are not recorded beside the pages: then also pages under objects are in the profile of pages. */
    bool pages_alone;
    bool is_filtered; /* only some allocations are accounted: then frees of others are not counted */
    /* functions that allocate for their callers; must outlive the capture. NULL: there is no list */
    const struct wrappers *helpers;
    bool comms;          /* events say which program was running */
    bool no_ages;        /* of no object is it known when it was allocated */
    bool over;           /* nothing will be added */
    uint64_t lost;       /* events that are missing */
    int64_t realtime_ns; /* CLOCK_REALTIME minus the clock of the events */
    /* when it ended, on the clock of the events, and how long frees were noted after it; 0: they were not */
    uint64_t end_ns, settle_ns;
    /* CLOCK_REALTIME; of a capture that may have no event of an object. 0: it ends now */
    uint64_t began_ns, ended_ns;
    uint64_t image_id; /* of the profile of objects; odd, and the one of pages has the next number */
    /* The cells of the profile. Each new profile keeps the order of the earlier cells, and appends new ones. */
    struct VEC(struct kernel_capture_cell) cells;
    struct map cell_index;
    struct VEC(struct kernel_capture_page_cell) page_cells; /* of the other one */
    struct map page_cell_index;
    char (*kmalloc_names)[KERNEL_CAPTURE_NAME]; /* by size / 8; "": not met yet */
};

/** Sets when the first and the last event was, of objects or pages (CLOCK_REALTIME): the times of both images. */
void kernel_capture_times(const struct kernel_capture *c, uint64_t *began_ns, uint64_t *taken_ns);
/** Makes empty accounts. */
void kernel_capture_init(struct kernel_capture *c, const struct kernel_code_names *names);
void kernel_capture_release(struct kernel_capture *c);

/**
 * Returns what stands for the cache of an object of kmalloc(), whose events do not name one: "(kmalloc 192)", not the
 * name that slabinfo has, since of one size there are several caches; or "(pages)".
 */
const char *kernel_capture_kmalloc_name(struct kernel_capture *c, const struct kmem_event *e);
/** Before an allocation is accounted: marks the pages under the object, if pages are accounted. */
void kernel_capture_mark_pages(struct kernel_capture *c, const struct kmem_event *e);
/** Adds an event of pages; there must be pages. Returns false if it cannot be: see page_accounts_add(). */
bool kernel_capture_add_pages(struct kernel_capture *c, const struct page_event *e, uint32_t cpu);

/** From here on rows have what is allocated and freed from now on; see capture_span.h. */
void kernel_capture_begin_span(struct kernel_capture *c);

/** Sets a text of the last row: what one of the functions above appends for this number. */
void kernel_capture_put_name(struct table *t, uint32_t column,
                             void (*add)(void *arg, struct buf *b, uint64_t number), void *arg,
                             uint64_t number);

/** Tables with the columns of sys kmem. */
enum kernel_capture_rows {
    KERNEL_CAPTURE_CALLS,     /* by call, cache, program and flags */
    KERNEL_CAPTURE_PROCESSES, /* by process */
    KERNEL_CAPTURE_PAIRS,     /* by the call that allocates, the one that frees, and the cache */
    KERNEL_CAPTURE_ROWS
};
/** Their names in a recording, after "sys_". */
extern const char *const kernel_capture_rows_names[KERNEL_CAPTURE_ROWS];
/**
 * Appends these rows to a table; columns that are not known are hidden. Returns the parts of sys kmem by which these
 * rows are told apart, separated by commas; NULL: there can be none.
 */
const char *kernel_capture_add_rows(struct kernel_capture *c, enum kernel_capture_rows which,
                                    struct table *t);
/** Tables with the columns of sys kpages. */
enum kernel_capture_page_rows {
    KERNEL_CAPTURE_PAGES, /* by order, migrate type, flags, program, use, and stack if there are stacks */
    KERNEL_CAPTURE_PAGE_PROCESSES,
    KERNEL_CAPTURE_PAGE_ROWS
};
extern const char *const kernel_capture_page_rows_names[KERNEL_CAPTURE_PAGE_ROWS];
/** Like kernel_capture_add_rows(). */
const char *kernel_capture_add_page_rows(struct kernel_capture *c, enum kernel_capture_page_rows which,
                                         struct table *t);
/** Returns whether a frame at the inner end of a page's stack is the tracing's and not the page allocator's. */
bool kernel_capture_is_tracing(const char *function);
/** Set a text of the last row: the name of a migrate type, and the lines of a stack of pages. */
void kernel_capture_put_type(const struct kernel_capture *c, struct table *t, uint32_t column, uint32_t type);
void kernel_capture_put_page_stack(const struct kernel_capture *c, struct table *t, uint32_t column,
                                   uint32_t stack);
/** Sets what `allium sys kpages` would have counted; there must be pages. */
void kernel_capture_count_pages(const struct kernel_capture *c, uint64_t counted[static SYS_COUNTS]);

/** Returns an empty table of live objects of kmalloc() by call and size; see kernel_capture_add_sizes(). */
struct table *kernel_capture_sizes(void);
enum kernel_capture_size_column {
    SIZE_CALL,      /* call_site, as in rows of sys kmem */
    SIZE_FILE,      /* its file of the source; hidden if it is not known */
    SIZE_PAGES,     /* the object is made of whole pages, and not of a bucket */
    SIZE_REQUESTED, /* bytes of each object */
    SIZE_ALLOCATED,
    SIZE_OBJECTS, /* live ones */
    SIZE_COLUMNS,
};
/** Appends the live objects of the accounts to such a table. */
void kernel_capture_add_sizes(const struct kernel_capture *c, struct table *t);
/** Sets what `allium sys kmem` would have counted of these events: losses, frees of NULL and so on. */
void kernel_capture_count(const struct kernel_capture *c, uint64_t counted[static SYS_COUNTS]);
/** The names of the images of the profile. */
#define KERNEL_CAPTURE_OBJECTS  "kernel"
#define KERNEL_CAPTURE_NO_SLABS "kernel pages"
/**
 * Returns the accounts of objects as a profile with one image, the kernel, with exact sums of allocated, freed and peak
 * memory.
 */
struct profile *kernel_capture_profile(struct kernel_capture *c);
/**
 * Returns the accounts of pages in the same way; NULL: they were not recorded. Pages that are known to be under objects
 * of the other profile are left out, so that sums over both count nothing twice. An object is a block of pages, which
 * counts as freed with its last page. Without a stack, the flags of the request stand for the function, and the
 * program for its caller.
 */
struct profile *kernel_capture_page_profile(struct kernel_capture *c);

#endif
