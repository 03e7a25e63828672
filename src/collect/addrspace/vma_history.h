/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_VMA_HISTORY_H
#define COLLECT_VMA_HISTORY_H

/*
 * The mappings of one address space over time: what was mapped where, at any moment not too long ago.
 *
 * A space is a layer of mappings, each with its time, upon another layer or nothing. The latest mapping of an
 * address wins. So nothing has to be cut when something is mapped over something else, and a late record
 * finds its place. A fork puts a new layer for each of the two processes upon their common layer: nothing is
 * copied.
 *
 * Runs in: the tool. Threads: one.
 * Owns: layers are reference-counted, and so are files, which a table keeps unique.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "base/vec.h"

enum mapping_kind {
    MAPPING_NONE,      /* not mapped, as far as known */
    MAPPING_HEAP,      /* made by brk */
    MAPPING_STACK,     /* of the main thread; stacks of other threads are anonymous memory */
    MAPPING_FILE,      /* pages of a file, including private copies */
    MAPPING_ANONYMOUS, /* private memory without a file */
    MAPPING_HUGETLB,
    MAPPING_SHARED, /* shared anonymous memory, memfd, /dev/shm, System V */
    MAPPING_VDSO,   /* code and data provided by the kernel: [vdso], [vvar], [vsyscall] */
    MAPPING_UNKNOWN,
    MAPPING_KINDS
};

/** The object of a mapping that is not anonymous memory. */
struct mapping_file {
    /* as the process sees it, with " (deleted)" behind if the name was gone; or "[stack]" and the like */
    char *path;
    uint32_t major, minor;
    uint64_t inode; /* 0: not known */
    size_t refs;
};

struct space_mapping {
    uint64_t start, end;        /* parts of it may be covered by later mappings */
    uint64_t page_offset;       /* bytes from the file's start to `start` */
    uint32_t protection, flags; /* PROT_*, and the known ones of MAP_* */
    enum mapping_kind kind;
    struct mapping_file *file; /* NULL: anonymous */
};

/** Stores each file once. */
struct mapped_files {
    struct map map;
    struct VEC(struct mapping_file *) files;
    size_t dead; /* number of files without references */
};

/** Returns the file with one reference for the caller. `like` describes it; `path` is copied. */
struct mapping_file *mapped_files_get(struct mapped_files *files, const char *path,
                                      const struct mapping_file *like);
void mapped_files_put(struct mapped_files *files, struct mapping_file *file);
void mapped_files_release(struct mapped_files *files);

struct vma_history;

/** Returns an empty space, or one that begins as a copy of `under` and takes over its reference. */
struct vma_history *vma_history_new(struct vma_history *under, uint64_t from_ns);
struct vma_history *vma_history_get(struct vma_history *m);
void vma_history_put(struct mapped_files *files, struct vma_history *m);
/**
 * If the uppermost layer has no mapping, returns the layer below it, which can be shared instead; else
 * returns `m`.
 */
struct vma_history *vma_history_shareable(struct vma_history *m);

/** Records that `mapping` exists from time_ns on. Takes over its reference to the file. */
void vma_history_add(struct vma_history *m, uint64_t time_ns, const struct space_mapping *mapping);
/** Records that nothing is mapped from time_ns on. */
void vma_history_clear(struct vma_history *m, uint64_t time_ns);
/** Finds what is mapped at the address at that time. Returns false if nothing is, as far as known. The file
 * stays owned by the history. */
bool vma_history_find(const struct vma_history *m, uint64_t time_ns, uint64_t address,
                      struct space_mapping *out);
/** Finds the first mapping at or above the address, at that time. */
bool vma_history_next(const struct vma_history *m, uint64_t time_ns, uint64_t address,
                      struct space_mapping *out);

/** Returns whether vma_history_fold() is worthwhile. */
bool vma_history_grown(const struct vma_history *m);
/** Removes mappings that had vanished before oldest_query_ns, and stops sharing layers. */
void vma_history_fold(struct mapped_files *files, struct vma_history *m, uint64_t oldest_query_ns);
/** Returns the number of stored mappings, including covered ones. */
size_t vma_history_count(const struct vma_history *m);

#endif
