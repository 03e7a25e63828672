/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SITES_SUMMARY_H
#define CLI_SITES_SUMMARY_H

/*
 * The output of `allium run --sites` at its end: the sites with most memory, added up over all processes that
 * it followed.
 */

#include "model/accounts/accounts.h"

/** For accounts_say_losses(), for sites. */
extern const char *const sites_losses[ACCOUNT_LOSSES];

/** Prints the summary of a recording on stderr. */
void sites_summary_write(const char *path);

#endif
