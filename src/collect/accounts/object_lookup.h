/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_OBJECT_LOOKUP_H
#define COLLECT_OBJECT_LOOKUP_H

/*
 * Finds the live object at an address of a running process, in its map of objects and its tree of mappings
 * (wire/object_map_layout.h), for tags and for sites.
 *
 * Runs in: the tool.
 * Threads: one. Needs the rights of ptrace(2): the same user, and unless kernel.yama.ptrace_scope is 0 also a
 * child of ours, or CAP_SYS_PTRACE. Nothing in the map is trusted. The process is not stopped: an object that
 * was found may be gone by then. Pages of the map that the process never touched are not touched.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct objects;

/** Addresses in the process. */
struct object_lookup_where {
    uint64_t tables; /* directory of the map: the value of the header's `objects` or `tagged` */
    uint64_t ranges; /* address of the header's field `ranges`, which may be filled later; 0: none */
};

/** An object is found if it begins at most so far before the address. */
#define OBJECT_LOOKUP_REACH_BYTES (64ull << 30)

/** The result for a page. */
struct object_lookup_found {
    uint32_t account; /* 0: no object; `had_objects` tells whether objects begin nearby */
    uint64_t start, bytes;
    bool shared;      /* other accounts have objects in the same page */
    bool had_objects; /* within 16 KiB, or 2 MiB for large ones: the span of a page of the map */
};

/** Finds the map by tag or by site, as the header of the process's ledger gives it. Returns 0, or -errno with
 * a line. */
int object_lookup_find(struct object_lookup_where *where, int ledger, bool tags, pid_t pid, bool alive,
                       struct error *e);
/** Returns 0, or -errno with a line. */
int object_lookup_open(struct objects **out, pid_t pid, const struct object_lookup_where *where,
                       struct error *e);
void object_lookup_close(struct objects *o);

/** Returns false if the process has ended. */
bool object_lookup_is_there(const struct objects *o);
/**
 * Finds the object that contains the address. If there is none, finds the first object that begins behind it
 * in the page (an allocator's own words lie before its objects), else the last one before it in the page,
 * else the mapping of a tagged call. Returns 0, -ESRCH if the process has ended, or -EPERM.
 */
int object_lookup_at(struct objects *o, uint64_t address, struct object_lookup_found *found);

#endif
