/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_FAULTS_COMMAND_H
#define CLI_FAULTS_COMMAND_H

/*
 * `--faults`: counts the page faults of a process for some time, by the allocation that owns the object in
 * the page, and shows them.
 */

#include <sys/types.h>

#include "cli/accounts/accounts_command.h"

struct faults_options {
    pid_t pid;
    uint64_t duration_ns;
    enum account_group group;
    const char *group_word;
    const struct query *query; /* NULL: everything */
    uint32_t top;              /* rows; 0: all */
    bool json, paged;
};

/** Counts until the time is over, SIGINT or SIGTERM comes, or the process ends; prints; returns the exit
 * code. */
int faults_command(const struct faults_options *o, const struct accounts_kind *kind,
                   struct alloc_texts *texts, struct symbols *symbols);

#endif
