/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_HTML_MARKS_H
#define VIEW_HTML_MARKS_H

/*
 * What the page of a trace marks beside its events: spans that have begun and not ended, and the stretches of time in
 * which events were lost.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its lists, until html_marks_release().
 */

#include "base/hash_map.h"
#include "model/trace/event_losses.h"
#include "view/events/open_spans.h"
#include "view/page/page_blob.h"

#define HTML_MARKS_MOST 1000u /* open spans */

/* Zero at first. */
struct html_marks {
    struct open_spans open; /* after html_marks_choose() the longest ones, which come first */
    uint64_t n_open;        /* all */
    struct VEC(
        uint64_t) rows; /* of each in `open`: the number of the row with which it begins; UINT64_MAX: none */
    struct map by_number;
    struct VEC(struct lost_stretch) lost;
};

void html_marks_release(struct html_marks *m);
/** After open_spans_add() of all spans to `open`: keeps the longest HTML_MARKS_MOST. */
void html_marks_choose(struct html_marks *m);
/** Notes that the event of this number (struct span) has the number `row` among the events that the page may have.
 * Returns the open span that it begins; NULL: it begins none. */
const struct open_span *html_marks_begins(struct html_marks *m, uint64_t number, uint64_t row);
/** Adds the stretches between first_ns and last_ns. Stretches of a CPU with less than `step_ns` between them become
 * one. */
void html_marks_add_lost(struct html_marks *m, const struct event_losses *losses, uint64_t first_ns,
                         uint64_t last_ns, uint64_t step_ns);
/** Adds "open_spans", "open", "open_rows" and "lost"; times are since began_ns. */
void html_marks_write(const struct html_marks *m, struct page_blob *b, uint64_t began_ns, bool has_numbers);

#endif
