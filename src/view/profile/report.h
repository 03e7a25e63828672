/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_REPORT_H
#define VIEW_REPORT_H

/* A profile for people: the output of `allium report`, and of `allium run` at its end. */

#include "model/profile/rollup.h"
#include "view/text/sink.h"
#include "view/text/text.h"

struct report_options {
    struct text_style style;
    const char *source; /* the source, "run.allium"; NULL: not shown */
    const char *filter; /* the filter in words; NULL: none */
    uint32_t top;       /* rows; 0: all */
    uint32_t frames;    /* of each stack; 0: all */
};

/** Writes header, totals, processes, the rows of the rollup, and what the report does not show. */
void report_write(struct sink *out, const struct rollup *r, const struct report_options *o);

/**
 * Writes at most a dozen lines. `file`: the recording, for a line that says how to go on; NULL: no such line. `unseen`:
 * a sentence on the memory that the program's language hides, if the figures do not show how much; NULL: none.
 */
void summary_write(struct sink *out, const struct profile *p, const struct text_style *style,
                   const char *file, const char *unseen);

#endif
