/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_UNOBSERVED_LIST_H
#define WIRE_UNOBSERVED_LIST_H

/*
 * A file in the directory of ledgers with one line for each program that was started without the agent, because it
 * cannot run with it: "WHY PATH\n", where WHY is a number (enum preload_check_result). If the execve() fails after the
 * line was written, a line "-WHY PATH\n" cancels it. Lines are only appended. If the file has UNOBSERVED_NAMED_BYTES,
 * further lines have no path; if it has UNOBSERVED_BYTES_MAX, no lines are added.
 *
 * Runs in: target, at exec. Threads: any, including vfork children and signal handlers.
 */

#include "wire/ledger_make.h"
#include "wire/preload_check.h"

#define UNOBSERVED_FILE        "unobserved"
#define UNOBSERVED_NAMED_BYTES (256 << 10)
#define UNOBSERVED_BYTES_MAX   (1 << 20)
#define UNOBSERVED_PATH_BYTES  256 /* if a path is longer, its end is stored */

/*
 * A mark is an empty file whose name has the contents of a line. It is made if no line can be written (RLIMIT_FSIZE, a
 * full tmpfs). The name is "PID-ID-WHY PATH" and UNOBSERVED_SUFFIX, with \\ for /; WHY is negative in a mark that
 * cancels another. If no file can be made, a memfd of this name is mapped, so that /proc/PID/maps shows the name while
 * the process lives.
 */
#define UNOBSERVED_SUFFIX ".unobserved"

/** Makes a mark; `id` makes its name unique. `started`: as for unobserved_note(). False: neither file nor memfd. */
ONE_COPY bool unobserved_mark(const struct ledger_config *config, uint64_t id, enum preload_check_result why,
                              const char *path, bool started);
/**
 * Adds a program to the list of those that are not observed, a file in the directory of ledgers, if that exists. If
 * the file cannot be written, makes an empty file whose name says the same. `started`: false to cancel the line of a
 * program that could not be started. Returns false if neither succeeded.
 */
ONE_COPY bool unobserved_note(const struct ledger_config *config, enum preload_check_result why,
                              const char *path, bool started);

#endif
