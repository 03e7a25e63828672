/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_CHARGE_H
#define CLI_SYS_CHARGE_H

/*
 * Whose row a free counts in (--charge), and the classic table of the kernel's allocations (--slab-account).
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "cli/sys/sys_options.h"
#include "model/table/table.h"
#include "sys/tool.h"
#include "view/text/sink.h"

/** Reads --charge, --slab-account and --depth, after the tool's own options. Returns -1 to go on, or the exit code. */
int sys_charge_parse(struct sys_request *r, const struct arguments *a);

/**
 * Rows have the frees that were made there. This makes of them the frees of what was allocated there; rows that only
 * free go. The rows must know what is live; if not all objects were followed, what was freed is not known.
 */
void sys_charge_allocator(const struct sys_charge *c, bool all_followed, struct table *t);

/**
 * Writes what the slab_account patches to the kernel printed: sums of all rows, and a line for each call, with the
 * frees of what it allocated. The rows are as sys_charge_allocator() leaves them.
 */
void sys_charge_write_slab_account(const struct sys_charge *c, const struct table *t, struct sink *out);

#endif
