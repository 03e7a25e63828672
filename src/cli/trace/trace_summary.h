/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_SUMMARY_H
#define CLI_TRACE_SUMMARY_H

/* What `allium trace` says at the end: events, rate, losses, the size of the rings, the cost, and what to type next. */

#include <inttypes.h>

#include "run/record.h"
#include "run/trace/ring_follow.h"
#include "run/trace/trace_flight.h"

/* Of kernel_follow_counts.missed; the kernel does not tell which process an event was of. */
#define TRACE_SUMMARY_MISSED                                                                                 \
    "up to %" PRIu64                                                                                         \
    " more may be missing: events of any process that came while their CPU recorded another "                \
    "one"

/** Prints lines on stderr. `folder`: of the trace. */
void trace_summary_print(const struct ring_follow_counts *n, const char *folder);
/** The same of --flight. */
void trace_summary_print_flight(const struct trace_flight_counts *n, const char *folder);

/** Says what there is of the kernel. `last`: with --flight, how many of its events the last snapshot has. */
void trace_summary_print_kernel(const struct record_trace *t, const struct kernel_follow_counts *n,
                                uint64_t last);

/** Says what is missing in the program's own events. */
void trace_summary_print_user(const struct user_counts *n);
/** The same, and what the program has damaged. */
void trace_summary_print_damages(const struct ring_follow_counts *n);
/** Appends how many events were lost for which reason; nothing if none was. */
void trace_summary_add_reasons(struct buf *b, const struct ring_follow_counts *n);

#endif
