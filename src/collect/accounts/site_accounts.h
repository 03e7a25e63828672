/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_SITE_ACCOUNTS_H
#define COLLECT_SITE_ACCOUNTS_H

/*
 * The accounts of call sites of a process, from its agent's ledger.
 *
 * Runs in: the tool. Nothing in the ledger is trusted: inconsistent records are left out and counted.
 */

#include <sys/types.h>

#include "base/error.h"
#include "collect/accounts/account_modules.h"
#include "collect/accounts/object_faults.h"
#include "collect/ledger/ledger_copy.h"
#include "model/accounts/accounts.h"
#include "model/profile/wrappers.h"
#include "symbol/symbol.h"

/*
 * How a site becomes a place of an account. Function, file and line are those of the innermost frame that is
 * no wrapper. `name` has the functions that it is inlined into. `class` is one of these words.
 */
/* the site's function is a wrapper that was not known as such, or whose callers could not be found */
#define SITES_WRAPPER   "wrapper"
#define SITES_TAIL_CALL "tail call" /* the function calls another one, which jumped to the allocator */
#define SITES_TAG       "tag" /* not a call but the place of a tag, whose objects are charged to no call */
/* the function of all sites that the ledger had no room for */
#define SITES_OTHER     "[sites without a record]"
#define SITES_NO_MODULE "[JIT or unknown code]" /* the function of all code outside every module */

/** The contents of one ledger before its sites have names. */
struct sites_reading {
    struct account_rows rows;    /* one for each site; `code` is its return address in the module's file */
    struct VEC(uint32_t) module; /* of each row; or LEDGER_NONE */
    struct VEC(bool) by_wrapper; /* of each row: it calls a wrapper, which calls the allocator */
    struct VEC(uint64_t) key;    /* of each row: ledger_site_key(); 0: no rule can apply to it */
    struct VEC(uint32_t) number; /* of each row, in the ledger */
    bool idle;                   /* include sites whose counts are 0 */
    struct account_modules modules;
    struct account_process process;
    const struct object_faults *faults; /* NULL: not counted */
    bool kept;                          /* the process was started with accounts of sites */
    bool unfollowed;                    /* but has no address space for the map of objects */
};

/** Reads the accounts in a copy, without names. */
void sites_from_copy(struct sites_reading *r, const struct ledger_copy *c, struct alloc_texts *texts);
void sites_reading_release(struct sites_reading *r);

/**
 * Reads the accounts in an open ledger. Files for names are below `root` ("": our own root). Returns 0, or
 * -errno with a line; -ENOENT: it has no accounts.
 */
int sites_read_places(struct sites_reading *r, struct alloc_texts *texts, int fd, struct symbols *symbols,
                      const struct wrappers *wrappers, const char *root, struct error *e);
/** Opens the ledger of a running process, or the last one that it left. Returns a descriptor, or -errno with
 * a line. */
int sites_open(pid_t pid, bool *alive, struct error *e);

/**
 * Adds the accounts in an open ledger to `a`, as those of process `pid`, with names from files below `root`
 * ("": our own root). The rows are by place. Returns 0, or -errno with a line.
 */
int sites_read_file(struct accounts *a, struct alloc_texts *texts, int fd, pid_t pid, bool alive,
                    struct symbols *symbols, const struct wrappers *wrappers, const char *root,
                    struct error *e);
/**
 * Reads the accounts of a process, or of its left-over ledger, with the faults that were counted for each account
 * (NULL: none were). Returns 0, or -errno with a line: -ESRCH no such process, -ENOENT it has no accounts.
 */
int sites_read(struct accounts *a, struct alloc_texts *texts, pid_t pid, const struct object_faults *faults,
               struct symbols *symbols, const struct wrappers *wrappers, struct error *e);
/** Like tags_find_objects(). */
int sites_find_objects(struct object_lookup_where *where, pid_t pid, struct error *e);

#endif
