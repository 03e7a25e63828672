/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_VMA_HISTORY_H
#define COLLECT_VMA_HISTORY_H

/*
 * The mappings of one address space over time: what was mapped where, at any moment that is not too long ago.
 *
 * A space is a layer of mappings, each with its time, upon another layer or nothing. The latest mapping of an address
 * wins, so nothing has to be cut when something is mapped over something else, and what is told too late finds its
 * place. A fork puts a new layer for each of the two upon the one they had in common: nothing is copied.
 *
 * Runs in: the tool. Threads: one. Owns: layers count their references, and so do files, which a table keeps unique.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "base/vec.h"

enum mapping_kind {
    MAPPING_NONE,      /* not mapped, as far as is known */
    MAPPING_HEAP,      /* what brk made */
    MAPPING_STACK,     /* the main thread's; those of other threads are anonymous memory like any other */
    MAPPING_FILE,      /* a file's pages, also the private copies */
    MAPPING_ANONYMOUS, /* private memory of no file */
    MAPPING_HUGETLB,
    MAPPING_SHARED, /* shared anonymous memory, memfd, /dev/shm, System V */
    MAPPING_VDSO,   /* code and data that the kernel put there: [vdso], [vvar], [vsyscall] */
    MAPPING_UNKNOWN,
    MAPPING_KINDS
};

/** What is mapped, other than anonymous memory. */
struct mapping_file {
    char *
        path; /* as the process sees it, with " (deleted)" behind what had no name by then; "[stack]" and its like */
    uint32_t major, minor;
    uint64_t inode; /* 0: not known */
    size_t refs;
};

struct space_mapping {
    uint64_t start, end;        /* some of it may be covered by later ones */
    uint64_t page_offset;       /* bytes from the file's start to `start` */
    uint32_t protection, flags; /* PROT_*; of MAP_* what is known */
    enum mapping_kind kind;
    struct mapping_file *file; /* NULL: anonymous */
};

/** Every file once. */
struct mapped_files {
    struct map map;
    struct VEC(struct mapping_file *) files;
    size_t dead; /* that nobody refers to any more */
};

/** One reference is the caller's. `like` says what it is, `path` is copied. */
struct mapping_file *mapped_files_get(struct mapped_files *files, const char *path,
                                      const struct mapping_file *like);
void mapped_files_put(struct mapped_files *files, struct mapping_file *file);
void mapped_files_release(struct mapped_files *files);

struct vma_history;

/** An empty space, or one that begins as a copy of `under` is; that keeps its reference. */
struct vma_history *vma_history_new(struct vma_history *under, uint64_t from_ns);
struct vma_history *vma_history_get(struct vma_history *m);
void vma_history_put(struct mapped_files *files, struct vma_history *m);
/**
 * Has nothing been mapped in the uppermost layer, so that what lies under it can be shared instead? Then that, else
 * `m`.
 */
struct vma_history *vma_history_settled(struct vma_history *m);

/** From time_ns on `mapping` is there; its reference to the file moves here. */
void vma_history_add(struct vma_history *m, uint64_t time_ns, const struct space_mapping *mapping);
/** From time_ns on nothing is there. */
void vma_history_clear(struct vma_history *m, uint64_t time_ns);
/** What is at the address at that time; false: nothing, as far as is known. The file is not the caller's. */
bool vma_history_find(const struct vma_history *m, uint64_t time_ns, uint64_t address,
                      struct space_mapping *out);
/** The mapping that begins first at or above the address, at that time. */
bool vma_history_next(const struct vma_history *m, uint64_t time_ns, uint64_t address,
                      struct space_mapping *out);

/** Is it worth vma_history_fold()? */
bool vma_history_grown(const struct vma_history *m);
/** Forgets what was there before settled_ns and is not any more, and no longer shares layers. */
void vma_history_fold(struct mapped_files *files, struct vma_history *m, uint64_t settled_ns);
/** Mappings that are kept, covered ones too. */
size_t vma_history_count(const struct vma_history *m);

#endif
