/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_UNOBSERVED_LIST_H
#define WIRE_UNOBSERVED_LIST_H

/*
 * A file in the directory of ledgers with one line for each start of a program that cannot carry the agent, or whose
 * allocator the agent does not see: "WHY PATH\n". WHY is a number (enum preload_check_result). If the program could not
 * be started after all, a line "-WHY PATH\n" cancels its line. Lines are only appended. If the file has at least
 * UNOBSERVED_NAMED_BYTES, further lines have no path; if it has UNOBSERVED_BYTES_MAX, no lines are appended.
 *
 * Runs in: target, when it starts a program, or cannot make its own ledger. Threads: any, including vfork children and
 * signal handlers.
 */

#include "wire/ledger_make.h"
#include "wire/preload_check.h"

#define UNOBSERVED_FILE        "unobserved"
#define UNOBSERVED_NAMED_BYTES (256 << 10)
#define UNOBSERVED_BYTES_MAX   (1 << 20)
#define UNOBSERVED_PATH_BYTES  256 /* with the NUL; of a longer path, only the end is stored */

/*
 * A mark is an empty file whose name has the contents of a line. It is made if a line cannot be written (RLIMIT_FSIZE,
 * a full tmpfs), or if a process cannot make its ledger. The name is "PID-ID-WHY PATH" and UNOBSERVED_SUFFIX, with a
 * backslash for each slash. In a mark that cancels another one, WHY is negative. If a process that cannot make its
 * ledger cannot make the file either, it maps a memfd of this name, so that /proc/PID/maps shows the name while the
 * process lives.
 */
#define UNOBSERVED_SUFFIX ".unobserved"

/**
 * Makes a mark: a file, else a memfd. `id` makes its name unique. `started`: as for unobserved_note(). Returns false if
 * neither could be made.
 */
ONE_COPY bool unobserved_mark(const struct ledger_config *config, uint64_t id, enum preload_check_result why,
                              const char *path, bool started);
/**
 * Appends a line for a program to the file in the directory of ledgers. If the line cannot be written, makes a file
 * that is a mark. `started`: false to cancel the line of a program that could not be started. Returns false if neither
 * succeeded, or if there is no directory, or if the file is full or cannot be opened.
 */
ONE_COPY bool unobserved_note(const struct ledger_config *config, enum preload_check_result why,
                              const char *path, bool started);

#endif
