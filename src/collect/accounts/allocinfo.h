/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_ALLOCINFO_H
#define COLLECT_ALLOCINFO_H

/*
 * The kernel's memory allocation profiling (CONFIG_MEM_ALLOC_PROFILING, Linux 6.10 and later): /proc/allocinfo,
 * or a copy of it.
 *
 *     allocinfo - version: 1.0
 *     #     <size>  <calls> <tag info>
 *             4096        1 mm/slub.c:2012 [module] func:alloc_slab accurate:no
 *
 * As lib/alloc_tag.c writes it, "%12lli %8llu " and a blank at the end, and codetag_to_text() in lib/codetag.c,
 * "%s:%u func:%s" or "%s:%u [%s] func:%s". Version 2.0 (commit 39d117e04d15 of September 2025, "alloc_tag: mark
 * inaccurate allocation counters in /proc/allocinfo output") may have " accurate:no" before that blank. The
 * size is that of a sum of counters that lie on each CPU and are read one after the other: it may be less than
 * 0. Each line becomes a row of struct accounts: its size is ACCOUNT_ALLOCATED_BYTES, read as a signed number, its
 * calls are ACCOUNT_ALLOCATED_CALLS, and all other counters are 0. The kernel does not count frees apart.
 *
 * Runs in: the tool. Threads: one at a time.
 * Owns: nothing; the caller frees the accounts with accounts_release().
 * Invariant: the text is not trusted; a malformed line is counted, and the first few are kept with the
 * reason.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/accounts/accounts.h"

#define ALLOCINFO_PATH "/proc/allocinfo"
/* longest line: a path of PATH_MAX and the other fields; longer lines are malformed */
#define ALLOCINFO_LINE_BYTES 4352

/**
 * Parses a text with any contents, and adds its names to `texts`. Returns 0; -EPROTO with a line if the first line
 * is not that of allocinfo, or if the version is not known.
 */
int allocinfo_parse(struct accounts *a, struct alloc_texts *texts, const char *text, size_t len,
                    struct error *e);
/**
 * Reads a file; "-": standard input; NULL: the kernel's own file. Returns 0; -EOPNOTSUPP: the kernel has no such
 * file, or profiling is off; -EACCES: no permission; -EPROTO as above; or the error of open(2) or read(2). Each with
 * a line.
 */
int allocinfo_read(struct accounts *a, struct alloc_texts *texts, const char *path, struct error *e);

#endif
