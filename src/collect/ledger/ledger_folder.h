/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_LEDGER_FOLDER_H
#define COLLECT_LEDGER_FOLDER_H

/*
 * Directories of ledgers, and what lies in them, by their paths: ".../allium-UID", ".../allium", and ".../run-NAME" in
 * these.
 *
 * They are their users' own, who may put a link in the place of each, also between two looks of ours, and we may be
 * root. So these parts of a path are walked one by one, and a link is as nothing. What is before them is the system's,
 * or was chosen by who started us.
 *
 * Runs in: the tool. Owns: nothing; descriptors are the caller's.
 */

/** A descriptor to list a directory with, or -errno: -ELOOP or -ENOTDIR where it is a link. */
int ledger_folder_open(const char *dir);
/** Opens a file in such a directory, in mode `how`; never waits. A descriptor or -errno. */
int ledger_file_open(const char *path, int how);
/** Removes a file in such a directory or, with AT_REMOVEDIR, a directory in one. 0 or -errno. */
int ledger_file_remove(const char *path, int how);

#endif
