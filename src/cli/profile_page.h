/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_PROFILE_PAGE_H
#define CLI_PROFILE_PAGE_H

/* A profile as one HTML page: `export --html`. */

#include "model/profile/rollup.h"
#include "view/text/sink.h"

/**
 * Writes the page. `label`: of the source. `like`: which cells and samples count, as in a rollup by stack. Marks the
 * profile's wrappers.
 */
void profile_page_write(struct sink *out, struct profile *p, const char *label,
                        const struct rollup_options *like);

/** Returns the metric that is shown unless another one is asked for: what is live; the peak if nothing is. */
enum rollup_sort profile_page_metric(const struct profile *p, const struct rollup_options *like);

#endif
