/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_HTML_H
#define VIEW_HTML_H

/*
 * A page in one file: HTML that opens anywhere, without a network. It has the data (page_blob.h), a script that shows
 * them (web/, embedded in the command), and for readers without JavaScript a text.
 *
 * The page may load and send nothing: its policy (CSP) allows the script and the style in it, by their hashes, and
 * nothing else. Names are text, never markup.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include <stdbool.h>

#include "view/page/page_blob.h"

struct html_page {
    const char *title;
    const char *text;    /* the first screen in words: summary and first rows */
    const char *creator; /* "allium 0.1.0" */
    bool has_events;     /* the data have the events of a trace: their view is a script of its own */
};

/** Writes the page, and frees the blob. */
void html_write(struct sink *out, const struct html_page *page, struct page_blob *blob);

/**
 * Appends a text for HTML and SVG. Characters of markup become references. Control characters, and those that turn the
 * direction of text, become their codes, such as \u202e; bytes that are not UTF-8 become \xff. Newlines stay.
 */
void html_add_text(struct buf *b, const char *text);

#endif
