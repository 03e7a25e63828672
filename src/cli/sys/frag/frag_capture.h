/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_FRAG_CAPTURE_H
#define CLI_FRAG_CAPTURE_H

/*
 * `allium sys frag -- CMD`: records every event of the kernel's allocators while CMD runs, and says by site what the
 * objects that are live at the end hold and pin.
 *
 * Runs in: the tool, as root. Threads: one. Owns: nothing.
 */

#include <stdint.h>

#include "collect/kernel/kernel_state.h"
#include "model/kernel/memory_state.h"
#include "model/table/table.h"

struct frag_capture_request {
    char **command;
    uint64_t buffer_bytes; /* of each CPU */
    uint64_t duration_ns;  /* 0: until the command ends */
};

/** What a capture has found; the members belong to the caller. */
struct frag_capture {
    struct table *sites;        /* of frag_sites_table(), to which rows are appended */
    struct table *fallbacks;    /* of frag_fallbacks_table(), in the same way */
    struct memory_state *state; /* as it was when the last event was read */
    struct kernel_state *texts; /* which it was made from */
    uint64_t lost;              /* events */
};

/** Returns -1, and the exit code of the command in `code`; or an exit code after a line. */
int frag_capture_run(const struct frag_capture_request *q, struct frag_capture *out, int *code);

#endif
