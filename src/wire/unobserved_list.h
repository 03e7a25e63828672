/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_UNOBSERVED_LIST_H
#define WIRE_UNOBSERVED_LIST_H

/*
 * A file beside the ledgers with one line for each program that was started without the agent because it
 * cannot carry the agent: "WHY PATH\n", where WHY is a number (enum carrier). "-WHY PATH\n" takes a line
 * back: the program did not start after all. Lines are only appended. From UNOBSERVED_NAMED_BYTES on, lines
 * have no path; from UNOBSERVED_BYTES_MAX on, no lines are added.
 *
 * Runs in: target, at exec. Threads: any, including vfork children and signal handlers.
 */

#include "wire/ledger_make.h"
#include "wire/preload_check.h"

#define UNOBSERVED_FILE        "unobserved"
#define UNOBSERVED_NAMED_BYTES (256 << 10)
#define UNOBSERVED_BYTES_MAX   (1 << 20)
#define UNOBSERVED_PATH_BYTES  256 /* of a longer path the end is kept */

/*
 * A mark: an empty file whose name has the contents of a line. It is made if no byte can be written
 * (RLIMIT_FSIZE, a full tmpfs). The name is "PID-ID-WHY PATH", with \\ for /, and UNOBSERVED_SUFFIX; WHY is
 * negative where a line would begin with "-". If no file can be made, a memfd of that name is mapped:
 * /proc/PID/maps shows it as long as the process lives.
 */
#define UNOBSERVED_SUFFIX ".unobserved"

/** Leaves a mark; `id` makes its name unique. Returns false if that failed, too. */
ONE_COPY bool unobserved_mark(const struct ledger_config *config, uint64_t id, enum carrier why,
                              const char *path, bool started);
/** Adds a line to the list in the directory of ledgers, if that exists; else leaves a mark file. `started` is false
 * to take a line back. Returns false if neither could be written. */
ONE_COPY bool unobserved_note(const struct ledger_config *config, enum carrier why, const char *path,
                              bool started);

#endif
