/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_BENCH_MEMCG_H
#define CLI_BENCH_MEMCG_H

/*
 * `allium bench --memcg`.
 *
 * Runs in: the tool.
 */

#include "cli/command.h"

/** Measures and prints. Returns the exit code. */
int bench_memcg_run(const struct command *c, const struct arguments *a);

#endif
