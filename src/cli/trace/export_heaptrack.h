/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_EXPORT_HEAPTRACK_H
#define CLI_EXPORT_HEAPTRACK_H

/*
 * `allium export --heaptrack`: of a trace the events as they happened, of other sources events that add up to the
 * profile.
 *
 * Runs in: the tool.
 */

#include "base/buf.h"
#include "base/error.h"
#include "view/formats/heaptrack.h"

/**
 * `source`: what the profile was read from, as the user wrote it; NULL: the newest recording. Appends a line to `notes`
 * if one call in the file stands for several. Returns 0, or -errno with a line.
 */
int export_heaptrack(struct sink *out, const char *source, const struct profile *p,
                     const struct heaptrack_options *o, struct buf *notes, struct error *e);

#endif
