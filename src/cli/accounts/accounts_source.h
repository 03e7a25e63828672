/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_ACCOUNTS_SOURCE_H
#define CLI_ACCOUNTS_SOURCE_H

/* Reads accounts from SOURCE (source.h). */

#include "cli/accounts/accounts_show.h"

/**
 * Reads the accounts of a process or a recording; NULL: the newest recording. -1, or the exit code after a
 * line.
 */
int accounts_source_read(const struct accounts_show *s, struct accounts_reading *r, const char *source);
void accounts_reading_release(struct accounts_reading *r);

#endif
