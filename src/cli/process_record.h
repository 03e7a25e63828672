/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_PROCESS_RECORD_H
#define CLI_PROCESS_RECORD_H

/*
 * What there is of a process, running or ended, as a recording: its ledger, and its accounts of tags and sites.
 *
 * Runs in: the tool. Owns: what it has read, until process_record_release().
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "model/accounts/accounts.h"
#include "model/accounts/alloc_texts.h"
#include "model/profile/profile.h"

enum { PROCESS_RECORD_TAGS, PROCESS_RECORD_SITES, PROCESS_RECORD_KINDS };
/** "tags" and "sites". */
extern const char *const process_record_kinds[PROCESS_RECORD_KINDS];

/** One of it at least is there. */
struct process_record {
    struct profile *profile;                        /* NULL: no ledger of samples */
    struct accounts accounts[PROCESS_RECORD_KINDS]; /* no process: none of that kind */
    struct alloc_texts texts;
};

/** Returns 0, or -errno with a line: why the process has no ledger. In both cases it is to be released. */
int process_record_read(struct process_record *f, pid_t pid, struct error *e);
/** Writes it into a new recording. Returns 0, or -errno with a line. */
int process_record_store(const struct process_record *f, const char *path, bool force, struct error *e);
void process_record_release(struct process_record *f);

#endif
