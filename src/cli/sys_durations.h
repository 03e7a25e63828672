/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_DURATIONS_H
#define CLI_SYS_DURATIONS_H

/*
 * How long events took, all together: what `allium sys NAME --hist` shows of a tool with events.
 *
 * Runs in: the tool.
 */

#include <stdbool.h>

#include "model/table.h"
#include "view/sink.h"
#include "view/text.h"

struct sys_durations {
    uint64_t events, total_ns, longest_ns;
    uint64_t slots[TABLE_SLOTS];
};

/** Adds the durations, in ns, of all rows of a table. */
void sys_durations_add(struct sys_durations *d, const struct table *t, uint32_t column);
/** As one row, with its histogram; in JSON, with the moment of the report, in ns since 1970, 0: none. */
void sys_durations_write(const struct sys_durations *d, struct sink *out, const struct text_style *style,
                         bool json, uint64_t time_ns);

#endif
