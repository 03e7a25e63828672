/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_LEDGER_DIR_H
#define COLLECT_LEDGER_DIR_H

/*
 * Where ledgers lie, and which there are.
 *
 * Runs in: the tool. Owns: lists are freed by ledger_list_release().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"

struct mapped_ledger;

struct ledger_entry {
    char *path; /* NULL: none that leads to it from here; ledger_entry_open() knows a way */
    pid_t pid;  /* from the name; in a ledger_scan, as we call the process */
    uint64_t image_id;
    uid_t owner;
    bool tags;  /* accounts of tags alone; the agent's has samples, and may have them, too */
    bool alive; /* a process maps it */
    bool sure;  /* of that, since the kernel says so; else it is what its pid seems to do */
    dev_t device;
    ino_t inode;
    struct mapped_ledger *mapped; /* as that process maps it; NULL: not looked for, or not found */
};

struct ledger_list VEC(struct ledger_entry);

/** Ledgers in one directory; 0 or -errno. */
int ledger_dir_scan(const char *dir, struct ledger_list *list);
/** All that this user may see: the default places, the directories of running recorders in them, and $ALLIUM_DIR. */
void ledger_dir_scan_all(struct ledger_list *list);
/** The same, of ledgers of tags alone. */
void ledger_dir_scan_tags(struct ledger_list *list);
void ledger_list_release(struct ledger_list *list);
/**
 * Does anybody map this ledger, whatever he is called in whatever namespace? 1, 0, or -errno: the kernel does not tell
 * us (it is not ours, and we have neither CAP_LEASE nor CAP_SETUID; or leases are turned off). Of a file that never had
 * a name it says 0 always.
 */
int ledger_is_held(int fd);
/** Opens a ledger for reading; a descriptor or -errno. */
int ledger_entry_open(const struct ledger_entry *entry);
/** Removes a ledger and its control page. */
void ledger_remove(const char *path);
/** Makes a private directory for one recorder within the default one; the path is the caller's. 0 or -errno. */
int ledger_dir_make(char **path, struct error *e);
/** All ledgers for that recorder: those in its directory, and in those of its name that other users have. */
void ledger_run_scan(const char *dir, struct ledger_list *list);
/** The same, of ledgers of tags alone. */
void ledger_run_scan_tags(const char *dir, struct ledger_list *list);
/** Visits that recorder's directory, and those of its name that other users have. */
void ledger_run_each_folder(const char *dir, void (*visit)(void *arg, const char *folder), void *arg);
/** Removes a recorder's directory if it holds no ledger. */
void ledger_dir_remove(const char *dir);
/** Removes these directories, as far as they hold no ledger: what still runs keeps its own. */
void ledger_run_remove(const char *dir);

#endif
