/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_REPORT_JSON_H
#define VIEW_REPORT_JSON_H

/*
 * A report as JSON, schema "allium-report": see allium-json(5), which changes with this file.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include "model/profile/rollup.h"
#include "view/text/sink.h"

struct report_json_options {
    const char *source, *filter; /* NULL: null */
    uint32_t top;                /* rows; 0: all */
};

void report_json_write(struct sink *out, const struct rollup *r, const struct report_json_options *o);

#endif
