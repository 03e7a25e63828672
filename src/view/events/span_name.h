/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_SPAN_NAME_H
#define VIEW_SPAN_NAME_H

/*
 * The name of a span for people: "malloc", "shop:parse", "page fault".
 *
 * Runs in: the tool. Pure.
 */

#include "model/trace/event_spans.h"

/** Returns the name. `end`: the event that ends the span; NULL: it has not ended, or the event is of another thread. */
const char *span_name(const struct span *s, const struct trace_event *end);

#endif
