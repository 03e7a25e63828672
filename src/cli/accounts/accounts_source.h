/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_ACCOUNTS_SOURCE_H
#define CLI_ACCOUNTS_SOURCE_H

/*
 * SOURCE (source.h) of accounts.
 *
 * Runs in: the tool.
 */

#include "cli/accounts/accounts_command.h"
#include "view/accounts/accounts_view.h"

/** Reads the accounts of that kind; `text` may be NULL. 0, or -errno with a line, and nothing to release. */
int accounts_source_read(struct accounts_reading *r, const struct accounts_kind *kind, const char *text,
                         struct alloc_texts *texts, struct symbols *symbols, struct error *e);
void accounts_reading_release(struct accounts_reading *r);

#endif
