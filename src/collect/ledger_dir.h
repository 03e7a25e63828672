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

struct ledger_entry {
    char *path;
    pid_t pid; /* from the name */
    uint64_t image_id;
    uid_t owner;
    bool alive; /* a process maps it */
};

struct ledger_list VEC(struct ledger_entry);

/** Ledgers in one directory; 0 or -errno. */
int ledger_dir_scan(const char *dir, struct ledger_list *list);
/** All that this user may see: the default places, the directories of running recorders in them, and $ALLIUM_DIR. */
void ledger_dir_scan_all(struct ledger_list *list);
void ledger_list_release(struct ledger_list *list);
/** Does a process map the ledger with this header? */
bool ledger_is_alive(const char *path, pid_t pid);
/** Removes a ledger and its control page. */
void ledger_remove(const char *path);
/** Makes a private directory for one recorder within the default one; the path is the caller's. 0 or -errno. */
int ledger_dir_make(char **path, struct error *e);
/** All ledgers for that recorder: those in its directory, and in those of its name that other users have. */
void ledger_run_scan(const char *dir, struct ledger_list *list);
/** Removes a recorder's directory if it holds no ledger. */
void ledger_dir_remove(const char *dir);
/** Removes these directories, as far as they hold no ledger: what still runs keeps its own. */
void ledger_run_remove(const char *dir);

#endif
