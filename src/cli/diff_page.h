/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_DIFF_PAGE_H
#define CLI_DIFF_PAGE_H

/* The difference of two profiles as one HTML page: `diff --html`. */

#include "base/error.h"
#include "view/profile/diff_view.h"

struct diff_page {
    const char *path;    /* of the file */
    bool force;          /* an existing file is replaced */
    uint64_t most_bytes; /* as of struct profile_page */
};

/**
 * Writes the page, whose text is what diff_write() prints with `o`. Returns 0, or a negative number and one line in
 * `e` that says why not.
 */
int diff_page_save(const struct diff_page *page, struct diff *d, const struct diff_view_options *o,
                   struct error *e);

#endif
