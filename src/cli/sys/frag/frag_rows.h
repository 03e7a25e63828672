/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_FRAG_ROWS_H
#define CLI_FRAG_ROWS_H

/*
 * The sites of `sys frag` in a recording. They are computed when it is made, as no recording has addresses.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "base/error.h"
#include "collect/kernel/kernel_state.h"
#include "model/table/table.h"
#include "store/recording.h"
#include "sys/record/kernel_capture.h"

/** Adds the sites of a capture, as they are now; the state tells the sizes of slabs, and is as old as the newest event.
 * Returns 0, or -errno with a line. */
int frag_rows_put(struct recording *r, const struct kernel_capture *c, const struct kernel_state *state,
                  struct error *e);
/**
 * Appends the sites of a recording, to a table of frag_sites_table(). If it has none, its rows of sys kmem take their
 * place: these lack what is live of the slack, and what is pinned. Returns 0, -ENODATA if there are neither, or another
 * -errno with a line.
 */
int frag_rows_load(struct table *sites, const char *path, struct error *e);

/**
 * Appends who took blocks of other migrate types, to a table of frag_fallbacks_table(). Returns 0, -ENODATA if the
 * recording does not tell, or another -errno with a line.
 */
int frag_rows_load_fallbacks(struct table *fallbacks, const char *path, struct error *e);

#endif
