/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_IMPORT_SHOWN_H
#define CLI_IMPORT_SHOWN_H

/*
 * `allium sys kmem --from TRACE`: what `allium sys import` reads is shown like a recording, by way of one that is
 * removed afterwards.
 *
 * Runs in: the tool. Threads: one. Owns: nothing between two calls.
 */

#include "cli/sys/sys_options.h"

/** Reads --time and the options about traces. Returns -1 to go on, or the exit code. */
int import_shown_parse(struct sys_request *r, const struct arguments *a);
/** Shows the file of --from, a recording or a trace. Returns the exit code. */
int import_shown_run(struct sys_request *r);

#endif
