/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_OBJECT_LOOKUP_H
#define COLLECT_OBJECT_LOOKUP_H

/*
 * Which live object of a process lies at an address: its map of objects, and its tree of mappings
 * (wire/object_map_layout.h), read in its memory while it runs. The same for tags and for sites.
 *
 * Runs in: the tool. Threads: one. Takes what ptrace(2) takes: the same user, and where kernel.yama.ptrace_scope is not
 * 0 a child of ours, or CAP_SYS_PTRACE. Nothing in the map is trusted. The process is not stopped: what is found may be
 * gone by then. Parts of the map that were never touched stay so.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct objects;

/** Where they are, in the process. */
struct object_lookup_where {
    uint64_t tables; /* of the map: the header's `objects` or `tagged` */
    uint64_t ranges; /* the header's field itself, which may be filled later; 0: none */
};

/** How far before an address an object may begin that is found there. */
#define OBJECT_LOOKUP_REACH_BYTES (64ull << 30)

/** What is found for a page. */
struct object_lookup_found {
    uint32_t account; /* 0: of nobody; `had_objects` tells whether any began close by */
    uint64_t start, bytes;
    bool shared;      /* other accounts have objects in the same page */
    bool had_objects; /* within 16 KiB, or 2 MiB of large ones, which are pages of the map */
};

/** By tag, or by site, as the header of the ledger of a process says that is alive or not. 0, or -errno with a line. */
int object_lookup_find(struct object_lookup_where *where, int ledger, bool tags, pid_t pid, bool alive,
                       struct error *e);
/** 0, or -errno with a line. */
int object_lookup_open(struct objects **out, pid_t pid, const struct object_lookup_where *where,
                       struct error *e);
void object_lookup_close(struct objects *o);

/** False: the process has ended. */
bool object_lookup_is_there(const struct objects *o);
/**
 * The object that has the address; else, as an allocator's own words lie before its objects, the first that begins
 * behind it in the page, else the last one before it in the page; where there is none, the mapping that a tagged call
 * made. 0, or -ESRCH: the process has ended, or -EPERM.
 */
int object_lookup_at(struct objects *o, uint64_t address, struct object_lookup_found *found);

#endif
