/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_MEASURED_H
#define CLI_SYS_MEASURED_H

/*
 * What `allium sys NAME --hist` shows of a tool with events, instead of them: what it measures of each, all together.
 *
 * Runs in: the tool.
 */

#include <stdbool.h>

#include "sys/tool.h"
#include "view/text/sink.h"
#include "view/text/text.h"

struct sys_measured {
    uint64_t events, total, most; /* in the unit of what is measured */
    uint64_t slots[TABLE_SLOTS];
};

/** Adds all rows of a table of events; those of which it is not known are left out. */
void sys_measured_add(struct sys_measured *m, const struct sys_measure *what, const struct table *t);
/** As one row, with its histogram; in JSON, with the moment of the report, in ns since 1970, 0: none. */
void sys_measured_write(const struct sys_measured *m, const struct sys_measure *what, struct sink *out,
                        const struct text_style *style, bool json, uint64_t time_ns);

#endif
