/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_MEMCG_WORK_H
#define BENCH_MEMCG_WORK_H

/*
 * Allocations of the kernel that a program causes, each with its release: what a memory cgroup is charged for.
 *
 * Runs in: the tool, in a process of its own. Threads: one. Owns: a struct memcg_work owns its file and its memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "bench/memcg/memcg_group.h"

#define MEMCG_WORK_PAGES 4096 /* that can be held at once, in rows of pages */

struct memcg_work;

struct memcg_work_kind {
    const char *name;
    const char *does;     /* one operation, for people */
    enum memcg_part part; /* of the cgroup's memory */
    bool pages;           /* each is charged as a page; else sizes of the kernel's structures decide */
    uint32_t fds;         /* open while one is held */
    int (*make)(int fds[2]);
    int (*prepare)(struct memcg_work *w, struct error *e);
    /* Does `n` operations, at most MEMCG_WORK_PAGES if they are of pages. Returns 0 or -errno. */
    int (*repeat)(struct memcg_work *w, uint32_t n);
    /* Allocates `n` that remain until drop(). Returns 0 or -errno. */
    int (*hold)(struct memcg_work *w, uint32_t n);
    void (*drop)(struct memcg_work *w);
};

extern const struct memcg_work_kind memcg_work_kinds[];
extern const size_t memcg_work_kinds_n;

struct memcg_work {
    const struct memcg_work_kind *kind;
    size_t page_bytes;
    int file;    /* page cache: holes, whose pages are cached without input or output; else -1 */
    char *pages; /* first touch */
    int *held;   /* descriptors */
    uint32_t held_n;
    uint32_t hold_max; /* so many can be held at once */
};

/** Returns 0, or -errno with a line that says why this machine cannot do it. */
int memcg_work_open(struct memcg_work *w, const struct memcg_work_kind *kind, struct error *e);
void memcg_work_close(struct memcg_work *w);

#endif
