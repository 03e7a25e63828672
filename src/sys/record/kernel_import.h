/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_KERNEL_IMPORT_H
#define SYS_KERNEL_IMPORT_H

/*
 * `allium sys import`: accounts of the kernel's objects from a trace that another tool has written.
 *
 * Runs in: the tool. Threads: one. Owns: the accounts and names, until kernel_import_free().
 */

#include <stdbool.h>
#include <stddef.h>

#include "sys/record/kernel_capture.h"

struct kernel_import;
struct kallsyms;

struct kernel_import_counts {
    uint64_t lines;
    uint64_t broken;            /* lines of kmem events in another form, or without a field that is needed */
    uint64_t lost;              /* events of which the trace says that they are missing */
    uint64_t lost_unknown;      /* places at which it says that some are missing, and not how many */
    uint64_t late;              /* events that are older than the one before them */
    uint64_t ticks;             /* events whose times are ticks of a clock that is not time */
    uint64_t without_address;   /* of which the trace hides which object it was: not accounted */
    uint64_t without_allocated; /* that tell only what was requested */
    uint64_t without_name;      /* whose call is an address that nothing names */
};

/** `symbols`: of the kernel that was traced, for calls that are addresses; must outlive it. NULL: there are none. */
struct kernel_import *kernel_import_new(const struct kallsyms *symbols);
/** NULL is allowed. */
void kernel_import_free(struct kernel_import *i);

/** Accounts what a line of a trace in text says. */
void kernel_import_line(struct kernel_import *i, const char *line, size_t len);
/** After the last line. `written_ns`: when the trace ended (CLOCK_REALTIME), as its clock is another one. */
void kernel_import_end(struct kernel_import *i, uint64_t written_ns);

/** They belong to `i`. */
struct kernel_capture *kernel_import_capture(struct kernel_import *i);
const struct kernel_import_counts *kernel_import_counts(const struct kernel_import *i);

#endif
