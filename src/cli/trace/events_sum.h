/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_EVENTS_SUM_H
#define CLI_EVENTS_SUM_H

/*
 * `allium events DIR --sum`: adds up the events of a trace, as `allium trace --sum` does while a program runs.
 *
 * Runs in: the tool. Threads: one. Owns: the sums, until events_sum_free().
 */

#include "cli/command.h"
#include "model/trace/event_query.h"
#include "model/trace/event_sums.h"
#include "view/text/text.h"

struct events_sum;

/** Reads --sum and --histogram. *out: NULL without --sum. Returns -1, or the exit code after a line. */
int events_sum_new(struct events_sum **out, const struct command *command, const struct arguments *a);
void events_sum_free(struct events_sum *s); /* NULL is allowed */
/** Adds an event; `site` is its return address, or 0, and `place` where that is. */
void events_sum_add(struct events_sum *s, const struct trace_event *e, uint64_t site,
                    const struct event_place *place);
/** Writes the table; `top` rows of it, or all (0). `lost`: events that the trace lacks, of any row. */
void events_sum_write(struct events_sum *s, uint64_t lost, uint32_t top, bool json, struct sink *out,
                      const struct text_style *style);

#endif
