/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_KERNEL_STORE_H
#define CLI_KERNEL_STORE_H

/*
 * Accounts of the kernel's objects in a recording, and in a few lines: what `sys record` and `sys import` share.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "base/buf.h"
#include "base/error.h"
#include "store/recording.h"
#include "sys/record/kernel_capture.h"

/** The name of the rows of live objects by size. */
#define KERNEL_STORE_SIZES "sys_kmem_sizes"

/** The key of the vmlinux whose files the rows have although nothing tells that it is the recorded kernel's. */
#define KERNEL_STORE_UNCHECKED "sys_vmlinux_unchecked"

/** Adds what the accounts are now, in a commit of its own. `first`: nothing was added before. Returns 0, or -errno with
 * a line. */
int kernel_store_moment(struct recording *r, struct kernel_capture *c, bool first, struct error *e);
/** Adds the CPU time and the memory of this process, which has recorded. Returns as above. */
int kernel_store_cost(struct recording *r, struct error *e);
/** Adds what ends a recording: the rows of sys kmem, with their losses. `source`: what the events come from, "tracefs".
 * `ended_ns`: when (CLOCK_REALTIME). Returns as above. */
int kernel_store_end(struct recording *r, struct kernel_capture *c, const char *source, uint64_t ended_ns,
                     struct error *e);

/** Appends the number of events, and the lines allocated, freed, older, live and, if there are some, pages. */
void kernel_store_add_summary(struct buf *b, const struct kernel_capture *c);
/** Appends only the figures of the live objects. */
void kernel_store_add_live(struct buf *b, const struct kernel_capture *c);
/** Appends the line about lost events. `advice`: what makes room for more. */
void kernel_store_add_lost(struct buf *b, uint64_t events, const char *advice);

#endif
