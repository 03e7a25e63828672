/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_FAULTS_COMMAND_H
#define CLI_FAULTS_COMMAND_H

/*
 * `--faults`: counts the page faults of a process for some time, by the allocation that owns the object in
 * the page, and shows them.
 */

#include "cli/accounts/accounts_show.h"

/** Counts until the time is over, SIGINT or SIGTERM comes, or the process ends; prints; returns the exit
 * code. */
int faults_command(const struct accounts_show *s, uint64_t duration_ns);

#endif
