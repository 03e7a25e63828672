/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TAG_ACCOUNTS_H
#define COLLECT_TAG_ACCOUNTS_H

/*
 * The accounts of tags of a process, from its ledger.
 *
 * Runs in: the tool. Nothing in the ledger is trusted: inconsistent records are left out and counted.
 */

#include <sys/types.h>

#include "base/error.h"
#include "collect/accounts/account_modules.h"
#include "collect/accounts/object_faults.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/process/container.h"
#include "model/accounts/accounts.h"
#include "symbol/symbol.h"
#include "wire/deferred_rules.h"

/** The contents of one ledger before its tags have names. */
struct tags_reading {
    struct account_rows rows;     /* one for each descriptor */
    struct VEC(uint32_t) module;  /* of each row; or LEDGER_NONE */
    struct VEC(uint64_t) key;     /* of each row: ledger_action_key() */
    struct VEC(uint32_t) account; /* of each row, in the ledger */
    /* of each row: its module's file has the descriptor; set only with `unmet` */
    struct VEC(bool) filed;
    bool idle;  /* include places whose counts are 0 */
    bool unmet; /* include places in the modules' files that were never called; their account is 0 */
    struct account_modules modules;
    struct account_process process;
    const struct object_faults *faults; /* NULL: not counted */
};

/** Reads the accounts in a copy, without names but the program's own. */
void tags_from_copy(struct tags_reading *r, const struct ledger_copy *c, struct alloc_texts *texts);
void tags_reading_release(struct tags_reading *r);

/**
 * Reads the accounts in an open ledger, with names from files below `root` ("": our own root) if there are
 * `symbols`. Returns 0, or -errno with a line.
 */
int tags_read_places(struct tags_reading *r, struct alloc_texts *texts, int fd, struct symbols *symbols,
                     const char *root, struct error *e);

/**
 * Adds the accounts in an open ledger to `a`, as those of process `pid`, with names from files below `root`
 * ("": our own root). The rows are by place. Returns 0, or -errno with a line.
 */
int tags_read_file(struct accounts *a, struct alloc_texts *texts, int fd, pid_t pid, bool alive,
                   struct symbols *symbols, const char *root, struct error *e);
/** The ledger of a running process, or the last one that it left. */
struct tags_source {
    int fd;
    bool alive;
    const char *root; /* prefix of the paths of its files */
    struct container_roots roots;
};

/** Returns 0, or -errno with a line: -ESRCH no such process, -ENOENT it has no accounts. */
int tags_open(struct tags_source *s, pid_t pid, struct error *e);
void tags_close(struct tags_source *s);
/**
 * Reads the accounts of a process, or of its left-over ledger, with the faults that were counted for each account
 * (NULL: none were). Returns 0, or -errno with a line: -ESRCH no such process, -ENOENT it has no accounts.
 */
int tags_read(struct accounts *a, struct alloc_texts *texts, pid_t pid, const struct object_faults *faults,
              struct symbols *symbols, struct error *e);
/**
 * Finds the process's map of objects (for object_faults_open()). Returns 0, or -errno with a line: it has no
 * accounts, has ended, or follows no objects.
 */
int tags_find_objects(struct object_lookup_where *where, pid_t pid, struct error *e);
/**
 * Reads the places of a program or library file; all counts are 0. Its one process has no pid, and counts
 * parts that were not understood in ACCOUNT_LOST_RECORDS. Returns 0, or -errno with a line, as
 * tags_file_open().
 */
int tags_read_binary(struct accounts *a, struct alloc_texts *texts, const char *path, struct symbols *symbols,
                     struct error *e);

#endif
