/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_CHARGE_H
#define CLI_SYS_CHARGE_H

/*
 * The row that a free is charged to (--charge), and the classic table of the kernel's allocations (--slab-account).
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
 * At first a row counts the frees that its call made. This function replaces them by the frees of the objects that the
 * call allocated, and removes rows that only free. The rows must have their live objects; if not all objects were
 * followed, the number of freed objects is not known.
 */
void sys_charge_allocator(const struct sys_charge *c, bool all_followed, struct table *t);

/**
 * Writes what the slab_account patches to the kernel printed: sums of all rows, and a line for each call, with the
 * frees of what it allocated. The rows are as sys_charge_allocator() leaves them.
 */
void sys_charge_write_slab_account(const struct sys_charge *c, const struct table *t, struct sink *out);

#endif
