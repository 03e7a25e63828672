/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_SITE_ACCOUNTS_H
#define COLLECT_SITE_ACCOUNTS_H

/*
 * The accounts of call sites of a process, from its agent's ledger.
 *
 * Runs in: the tool. Nothing in the ledger is trusted: what does not add up is left out, and counted.
 */

#include <sys/types.h>

#include "base/error.h"
#include "collect/accounts/object_faults.h"
#include "collect/ledger/ledger_copy.h"
#include "model/accounts/accounts.h"
#include "model/profile/wrappers.h"
#include "symbol/symbol.h"

/*
 * How a site becomes a place of an account: function, file and line are those of the innermost frame that is no
 * wrapper; `name` has the functions that it is inlined into, `class` one of these words.
 */
#define SITES_WRAPPER                                                                                        \
    "wrapper" /* the function itself is one, and was not known as such, or its callers cannot be found */
#define SITES_TAIL_CALL "tail call" /* of a function that it calls, which jumped to the allocator */
#define SITES_TAG       "tag" /* no call but the place of a tag: what is charged to it is charged to no call */
#define SITES_OTHER     "[sites without a record]" /* function, of all that the ledger had no room for */
#define SITES_NO_MODULE "[JIT or unknown code]"    /* function, of all code outside every module */

struct sites_module {
    char *path;
    uint8_t build_id[LEDGER_BUILD_ID_BYTES];
    size_t build_id_len;
};

/** What is read of one ledger before it has names. */
struct sites_reading {
    struct account_rows rows;    /* one for each site; `code` is its return address in the module's file */
    struct VEC(uint32_t) module; /* of each row, or LEDGER_NONE */
    struct VEC(bool) by_wrapper; /* it calls a wrapper, which calls the allocator */
    struct VEC(uint64_t) key;    /* of each row: ledger_site_key(); 0: nothing can be asked of it */
    struct VEC(uint32_t) number; /* of each row, in the ledger */
    bool idle;                   /* those of which nothing was counted, too */
    struct VEC(struct sites_module) modules;
    struct account_process process;
    const struct object_faults *faults; /* NULL: none were counted */
    bool kept;                          /* the process was started so that it keeps them */
    bool unfollowed;                    /* but has no address space for it */
};

/** The accounts of a copy, without names. */
void sites_from_copy(struct sites_reading *r, const struct ledger_copy *c, struct alloc_texts *texts);
void sites_reading_release(struct sites_reading *r);

/**
 * The same of an open ledger, with names from below `root` ("": our own). 0, or -errno with a line: -ENOENT it has no
 * accounts.
 */
int sites_read_places(struct sites_reading *r, struct alloc_texts *texts, int fd, struct symbols *symbols,
                      const struct wrappers *wrappers, const char *root, struct error *e);
/** The ledger of a process that lives, else the one that was left last: its descriptor, or -errno with a line. */
int sites_open(pid_t pid, bool *alive, struct error *e);

/**
 * The accounts in an open ledger, with names from below `root` ("": our own), added to `a` as those of process `pid`,
 * which is alive or not. Its rows are by place. 0, or -errno with a line.
 */
int sites_read_file(struct accounts *a, struct alloc_texts *texts, int fd, pid_t pid, bool alive,
                    struct symbols *symbols, const struct wrappers *wrappers, const char *root,
                    struct error *e);
/**
 * Those of a process, or what it left: 0, or -errno with a line: -ESRCH no such process, -ENOENT it has no accounts.
 */
int sites_read(struct accounts *a, struct alloc_texts *texts, pid_t pid, struct symbols *symbols,
               const struct wrappers *wrappers, struct error *e);
/** The same with the faults that were counted for each account. */
int sites_read_faults(struct accounts *a, struct alloc_texts *texts, pid_t pid,
                      const struct object_faults *faults, struct symbols *symbols,
                      const struct wrappers *wrappers, struct error *e);
/** As tags_find_objects(). */
int sites_find_objects(struct object_lookup_where *where, pid_t pid, struct error *e);

#endif
