/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_LEDGER_FOLDER_H
#define COLLECT_LEDGER_FOLDER_H

/*
 * Names of ledgers. Opens directories of ledgers, and files in them, by path: ".../allium-UID", ".../allium", and
 * ".../run-NAME" in these.
 *
 * The directories belong to users, who may replace any of them by a symbolic link at any time, and we may be
 * root. So these parts of a path are walked one by one, and links are not followed. The parts before them
 * belong to the system, or were chosen by the user who started us.
 *
 * Runs in: the tool. Owns: nothing; descriptors belong to the caller.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Parses a file name of the form "PID-IMAGE" and the suffix. Returns false if it has another form. */
bool ledger_name_parse(const char *name, const char *suffix, pid_t *pid, uint64_t *image_id);
/** Opens a directory for listing. Returns a descriptor, or -errno: -ELOOP or -ENOTDIR for a link. */
int ledger_folder_open(const char *dir);
/** Opens a file in such a directory, in mode `how`; never waits. Returns a descriptor or -errno. */
int ledger_file_open(const char *path, int how);
/** Removes a file in such a directory or, with AT_REMOVEDIR, a directory in one. Returns 0 or -errno. */
int ledger_file_remove(const char *path, int how);

#endif
