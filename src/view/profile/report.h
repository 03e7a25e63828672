/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_REPORT_H
#define VIEW_REPORT_H

/*
 * A profile for people: what `allium report` prints, and what `allium run` says at the end.
 *
 * Runs in: the tool. Threads: pure, but for the time zone. Owns: nothing. Writes to the sink only.
 */

#include "model/profile/rollup.h"
#include "view/text/sink.h"
#include "view/text/text.h"

struct report_options {
    struct text_style style;
    const char *source; /* what was read, "run.allium"; NULL: not worth a line */
    const char *filter; /* how the rollup was narrowed, in words; NULL: not at all */
    uint32_t top;       /* rows; 0: all */
    uint32_t frames;    /* of each stack; 0: all */
};

/** Header, totals, processes, the rows of the rollup, and what it does not show. */
void report_write(struct sink *out, const struct rollup *r, const struct report_options *o);

/** At most a dozen lines. `file` is the recording, for the line that says how to go on; NULL: no such line. */
void summary_write(struct sink *out, const struct profile *p, const struct text_style *style,
                   const char *file);

#endif
