/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_ALLOCINFO_IMPORT_H
#define SYS_ALLOCINFO_IMPORT_H

/*
 * A copy of /proc/allocinfo as the accounts of a trace: what each line of the kernel's source holds at one moment. It
 * tells nothing of what was freed before, and nothing of programs and caches.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include "base/error.h"
#include "sys/record/import/kernel_import.h"

/**
 * Reads such a text, with any contents; `written_ns`: when it was copied, CLOCK_REALTIME. Lines that are not understood
 * are counted. Returns 0, or -EPROTO with a line if it is no such text.
 */
int allocinfo_import_read(struct kernel_import *i, const char *text, size_t len, uint64_t written_ns,
                          struct error *e);

#endif
