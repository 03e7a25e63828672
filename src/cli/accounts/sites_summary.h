/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SITES_SUMMARY_H
#define CLI_SITES_SUMMARY_H

/*
 * What `allium run --sites` prints at the end: the leading sites of all processes that it followed, added up.
 *
 * Runs in: the tool.
 */

#include "model/accounts/accounts.h"

/** For accounts_say_losses(), of sites. */
extern const char *const sites_losses[ACCOUNT_LOSSES];

/** Of a recording; on stderr. */
void sites_summary_write(const char *path);

#endif
