/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_UNOBSERVED_LIST_H
#define WIRE_UNOBSERVED_LIST_H

/*
 * A file beside the ledgers, with a line for each program that was started without the agent, because it cannot carry
 * it: "WHY PATH\n", WHY a number (enum carrier); "-WHY PATH\n": it did not start after all. Only ever appended to. Past
 * UNOBSERVED_NAMED_BYTES lines have no path any more, past UNOBSERVED_BYTES_MAX there are no more lines.
 *
 * Runs in: target, at exec. Threads: any, vfork children and signal handlers included.
 */

#include "wire/ledger_make.h"
#include "wire/preload_check.h"

#define UNOBSERVED_FILE        "unobserved"
#define UNOBSERVED_NAMED_BYTES (256 << 10)
#define UNOBSERVED_BYTES_MAX   (1 << 20)
#define UNOBSERVED_PATH_BYTES  256 /* a longer path keeps its end */

/*
 * Where no byte can be written (RLIMIT_FSIZE, a full tmpfs), an empty file says the same by its name: "PID-ID-WHY" and
 * the path, with \\ for /, and UNOBSERVED_SUFFIX; WHY is negative where a line would begin with "-". Where no file can
 * be had, a memfd of that name is mapped, which /proc/PID/maps shows as long as the process lives.
 */
#define UNOBSERVED_SUFFIX ".unobserved"

/** Leaves such a mark; `id` makes its name a new one. False: that failed, too. */
ONE_COPY bool unobserved_mark(const struct ledger_config *config, uint64_t id, enum carrier why,
                              const char *path, bool started);
/**
 * Adds a line, or a mark, if the directory of ledgers is there already; false: neither could be had. `started`: or it
 * takes one back.
 */
ONE_COPY bool unobserved_note(const struct ledger_config *config, enum carrier why, const char *path,
                              bool started);

#endif
