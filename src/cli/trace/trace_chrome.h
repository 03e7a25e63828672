/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_CHROME_H
#define CLI_TRACE_CHROME_H

/* `allium export DIR --chrome`: a trace for ui.perfetto.dev and chrome://tracing. */

#include "base/buf.h"
#include "base/error.h"
#include "view/text/sink.h"

struct trace_chrome;

/** Reads the trace a first time, to learn what fits into the file. Returns 0, or -errno with a line; -EINVAL: the
 * folder is not a trace of allium. *out is NULL on failure. */
int trace_chrome_open(struct trace_chrome **out, const char *folder, struct error *e);
/** Writes the file, and adds lines to `notes` about what it lacks. Returns 0, or -errno with a line if the trace cannot
 * be read. */
int trace_chrome_write(struct trace_chrome *t, struct sink *out, struct buf *notes, struct error *e);
void trace_chrome_close(struct trace_chrome *t); /* NULL is allowed */

#endif
