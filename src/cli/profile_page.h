/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_PROFILE_PAGE_H
#define CLI_PROFILE_PAGE_H

/* A profile as one HTML page: `export --html`. */

#include <stdio.h>

#include "base/error.h"
#include "model/profile/rollup.h"
#include "view/page/html_events.h"
#include "view/text/sink.h"

/** What the page is of. */
struct profile_page {
    const char *label;                 /* of the source */
    const char *filter;                /* in words; NULL: none */
    const struct rollup_options *like; /* which cells and samples count, as in a rollup by stack */
    /* The limit of the page's data, as they are stored; 0: PROFILE_PAGE_BYTES. Above it the calls with least memory
     * become [rest], see call_tree_prune(); a few are always kept, even if the limit is too small for them. */
    uint64_t most_bytes;
    const struct html_events *events; /* of a trace; NULL: none */
};

#define PROFILE_PAGE_BYTES       (UINT64_C(20) << 20)
#define PROFILE_PAGE_LEAST       (UINT64_C(64) << 10) /* the least that may be asked for */
#define PROFILE_PAGE_LEAST_NODES 100u                 /* are always kept */
#define PROFILE_PAGE_TEXT_ROWS   50                   /* for readers without JavaScript */

/** Writes the page. Marks the profile's wrappers. */
void profile_page_write(struct sink *out, struct profile *p, const struct profile_page *page);

/**
 * Writes the page to a file; an existing one is replaced with `force` only. Returns 0, or a negative number and one
 * line in `e` that says why not.
 */
int profile_page_save(const char *path, bool force, struct profile *p, const struct profile_page *page,
                      struct error *e);

/** Opens the file of a page, empty; an existing one with `force` only. Returns NULL with a line. */
FILE *profile_page_open(const char *path, bool force, struct error *e);
/** Finishes and closes the file. Returns 0, or a negative number and one line in `e` that says why not. */
int profile_page_close(FILE *file, struct sink *out, const char *path, struct error *e);
/** Returns how many nodes to keep of a tree whose data were too large with so many. */
uint32_t profile_page_fewer(uint32_t nodes, size_t size, uint64_t limit);
/** Appends to the text of a page that only `most` calls of `all` have boxes. */
void profile_page_note_rest(struct buf *text, uint32_t all, uint32_t most);

/** Appends "server.allium: memory, func:parse*": the title of a page or a picture, whose subject `words` names. */
void profile_page_add_title(struct buf *b, const struct profile_page *page, const char *words);

/** Returns the metric that is shown unless another one is asked for: what is live; the peak if nothing is. */
enum rollup_sort profile_page_metric(const struct profile *p, const struct rollup_options *like);

#endif
