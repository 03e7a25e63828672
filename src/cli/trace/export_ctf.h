/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_EXPORT_CTF_H
#define CLI_EXPORT_CTF_H

/*
 * `allium export DIR --ctf -o DIR2`: a trace as LTTng would have written it, see allium-ctf(7).
 *
 * Runs in: the tool.
 */

#include "cli/command.h"

/** Runs `allium export` with the option --ctf. Returns an exit code, after a line. */
int export_ctf(const struct command *c, const struct arguments *a);

#endif
