/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_PROFILE_PAGE_H
#define CLI_PROFILE_PAGE_H

/* A profile as one HTML page: `export --html`. */

#include "base/error.h"
#include "model/profile/rollup.h"
#include "view/text/sink.h"

/** What the page is of. */
struct profile_page {
    const char *label;                 /* of the source */
    const char *filter;                /* in words; NULL: none */
    const struct rollup_options *like; /* which cells and samples count, as in a rollup by stack */
    /* The limit of the page's data, as they are stored; 0: PROFILE_PAGE_BYTES. Above it the calls with least memory
     * become [rest], see call_tree_prune(); a few are always kept, even if the limit is too small for them. */
    uint64_t most_bytes;
};

#define PROFILE_PAGE_BYTES (UINT64_C(20) << 20)
#define PROFILE_PAGE_LEAST (UINT64_C(64) << 10) /* the least that may be asked for */

/** Writes the page. Marks the profile's wrappers. */
void profile_page_write(struct sink *out, struct profile *p, const struct profile_page *page);

/**
 * Writes the page to a file; an existing one is replaced with `force` only. Returns 0, or a negative number and one
 * line in `e` that says why not.
 */
int profile_page_save(const char *path, bool force, struct profile *p, const struct profile_page *page,
                      struct error *e);

/** Appends "server.allium: memory, func:parse*": the title of a page or a picture, whose subject `words` names. */
void profile_page_add_title(struct buf *b, const struct profile_page *page, const char *words);

/** Returns the metric that is shown unless another one is asked for: what is live; the peak if nothing is. */
enum rollup_sort profile_page_metric(const struct profile *p, const struct rollup_options *like);

#endif
