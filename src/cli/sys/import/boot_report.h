/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_BOOT_REPORT_H
#define CLI_BOOT_REPORT_H

/*
 * What lies before the first event of a boot's trace (sys/record/early_memory.h), in a few lines, and in a recording.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "store/recording.h"
#include "sys/record/early_memory.h"

/** Texts of a recording: the line that says how much came before the trace, and the lines of the details. */
#define BOOT_REPORT_LINE    "kernel_before"
#define BOOT_REPORT_DETAILS "kernel_before_details"
/** The line is the first one of a report, as it is about more than a twentieth of the memory. */
#define BOOT_REPORT_LEADS "kernel_before_leads"

/** Appends one line, without a newline: how much came before the first event. */
void boot_report_add_line(struct buf *b, const struct early_memory *m);
/** Appends the lines of the details, each with a newline. */
void boot_report_add_details(struct buf *b, const struct early_memory *m);
/** Returns whether the line should come first. */
bool boot_report_leads(const struct early_memory *m);

/** Stores the lines, and rows of all caches and stacks. Returns 0, or -errno with a line. */
int boot_report_store(struct recording *r, const struct early_memory *m, uint64_t taken_ns, struct error *e);

#endif
