/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_IMPORT_MOMENT_H
#define CLI_IMPORT_MOMENT_H

/*
 * What the kernel itself notes of its live memory, at one moment, in place of a trace: alloc_traces of the slab caches,
 * and page_owner. Beside the accounts of all traces, the recording has tables with what only these files tell.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "cli/sys/import/import_trace.h"
#include "collect/kernel/trace/packed_input.h"
#include "store/recording.h"

/** Reads a folder of alloc_traces. Returns 0, or -errno with a line. */
int import_moment_slab_folder(struct import_trace *t, struct error *e);
/** Reads one alloc_traces; the folder in the file's path is the cache. Returns as above. */
int import_moment_slab_file(struct import_trace *t, struct packed_input *in, struct error *e);
/** Reads page_owner. Returns as above; what came before a failure is accounted. */
int import_moment_pages(struct import_trace *t, struct packed_input *in, struct error *e);
/** Adds the tables. Returns as above. */
int import_moment_store(struct recording *r, const struct import_trace *t, struct error *e);
/** Returns whether the file is of one moment, with nothing that was freed before. */
bool import_moment_is(const struct import_trace *t);
/** Appends the first lines of the summary. */
void import_moment_add_summary(const struct import_trace *t, struct buf *b);

#endif
