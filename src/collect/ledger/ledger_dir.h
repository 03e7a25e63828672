/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_LEDGER_DIR_H
#define COLLECT_LEDGER_DIR_H

/* The directories of ledgers, and the ledgers in them. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"

struct mapped_ledger;

struct ledger_entry {
    char *path; /* NULL: no path leads to it from here; ledger_entry_open() has another way */
    pid_t pid;  /* from the name; in a ledger_scan, the pid in our namespace */
    uint64_t image_id;
    uid_t owner;
    bool tags;  /* has accounts of tags only; the agent's ledger has samples and may have them, too */
    bool alive; /* a process maps it */
    bool sure;  /* `alive` comes from the kernel; else it is a guess from the pid */
    dev_t device;
    ino_t inode;
    struct mapped_ledger *mapped; /* as the process maps it; NULL: not searched, or not found */
};

struct ledger_list VEC(struct ledger_entry);

/** Lists the ledgers in one directory. Returns 0 or -errno. */
int ledger_dir_scan(const char *dir, struct ledger_list *list);
/** Lists all ledgers that this user can see: in the default places, in the directories of running recorders
 * there, and in $ALLIUM_DIR. */
void ledger_dir_scan_all(struct ledger_list *list);
/** Like ledger_dir_scan_all(), for ledgers of tags only. */
void ledger_dir_scan_tags(struct ledger_list *list);
void ledger_list_release(struct ledger_list *list);
/**
 * Returns whether any process in any pid namespace maps this ledger: 1, 0, or -errno if the kernel does not
 * tell (the ledger is not ours and we have neither CAP_LEASE nor CAP_SETUID; or leases are turned off). For a
 * file that never had a name the result is always 0.
 */
int ledger_is_held(int fd);
/** Opens a ledger for reading. Returns a descriptor or -errno. */
int ledger_entry_open(const struct ledger_entry *entry);
/** Removes a ledger and its control page. */
void ledger_remove(const char *path);
/** Makes a private directory for one recorder within the default one. The caller frees the path. Returns 0 or
 * -errno. */
int ledger_dir_make(char **path, struct error *e);
/** Returns whether a scan is to leave the ledger out. Of the entry, `image_id` and `tags` are set. */
typedef bool (*ledger_known_fn)(const void *arg, const struct ledger_entry *entry);
/** Lists all ledgers for that recorder, also those of tags only: those in its directory and, with `all_users`, in
 * the directories of that name in all other places of ledgers. */
void ledger_run_scan(const char *dir, bool all_users, ledger_known_fn known, const void *arg,
                     struct ledger_list *list);
/** Visits that recorder's directory, and the directories of that name of other users. */
void ledger_run_each_folder(const char *dir, void (*visit)(void *arg, const char *folder), void *arg);
/** Removes a recorder's directory if it has no ledgers. */
void ledger_dir_remove(const char *dir);
/** Removes these directories if they have no ledgers: processes that still run keep theirs. */
void ledger_run_remove(const char *dir);

#endif
