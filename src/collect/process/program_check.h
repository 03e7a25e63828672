/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROGRAM_CHECK_H
#define COLLECT_PROGRAM_CHECK_H

/* Decides whether a program can be observed through LD_PRELOAD, from its file, before it is started. */

#include <stdbool.h>

#include "base/error.h"
#include "wire/preload_check.h"

enum program_kind {
    PROGRAM_OK,
    /* defines malloc, or contains another allocator, whose requests are not seen; worth a warning */
    PROGRAM_OWN_MALLOC,
    PROGRAM_REFUSED, /* nothing would be seen, or it would not run */
};

/**
 * Finds CMD as execvp would (scripts: their interpreter) and looks at it. 0 with *kind and, unless PROGRAM_OK, a line
 * in `e`; -ENOENT or -EACCES with a line if there is nothing to execute. `*path` (may be NULL) is the caller's.
 */
int program_check(const char *cmd, char **path, enum program_kind *kind, struct error *e);
/** Returns whether the file is a Go program, whose heap is not malloc's. */
bool program_is_go(const char *path);
/** The reason for which a process is not observed, as the end of a sentence: "is statically linked". */
const char *program_check_reason(enum preload_check_result why);

#endif
