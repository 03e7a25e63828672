/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_EVENTS_PAGE_H
#define CLI_EVENTS_PAGE_H

/* The events of a trace for its page: `allium export DIR --html`. */

#include "base/error.h"
#include "cli/profile_filter.h"
#include "view/page/html_events.h"

/**
 * Reads the events of DIR, DIR@TIME or DIR@FROM..TO that the filter keeps (event_choice.h). *out: NULL if the source
 * is not a trace, and on failure; the caller frees it. `names`: the source's profile, which must stay as long as *out.
 * `page_bytes`: the limit of the page's data; 0: PROFILE_PAGE_BYTES. Returns 0, or -errno with a line.
 */
int events_page_read(struct html_events **out, const char *source, const struct profile *names,
                     struct profile_filter *filter, uint64_t page_bytes, struct error *e);

#endif
