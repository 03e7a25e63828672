/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_FAULTS_SHOW_H
#define CLI_FAULTS_SHOW_H

/*
 * Page faults of a process while somebody looks, by the place that made the object in the page: on the screen or as JSON.
 *
 * Runs in: the tool. Owns: nothing.
 */

#include <sys/types.h>

#include "cli/accounts/accounts_command.h"

struct faults_show {
    pid_t pid;
    uint64_t duration_ns;
    enum account_group group;
    const char *group_word;
    const struct query *query; /* NULL: everything */
    uint32_t top;              /* rows; 0: all */
    bool json, paged;
};

/** Counts until the time is over, SIGINT or SIGTERM comes, or the process ends; prints; the exit code. */
int faults_show(const struct faults_show *o, const struct accounts_kind *kind, struct alloc_texts *texts,
                struct symbols *symbols);

#endif
