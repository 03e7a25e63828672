/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_BENCH_VIEW_H
#define VIEW_BENCH_VIEW_H

/*
 * The result of `allium bench`: the floors, and then a row for each mechanism and sink. See allium-bench(1).
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include "base/buf.h"
#include "model/bench/bench_advice.h"
#include "model/bench/bench_parts.h"
#include "model/bench/bench_row.h"
#include "view/text/sink.h"
#include "view/text/text.h"

struct columns;

/** Adds a cell with a time of three digits, or a dash. */
void bench_view_ns(struct columns *g, const struct text_style *s, double ns);
/** The table of what switching costs; nothing if there is none. */
void bench_view_switchings(struct sink *out, const struct bench_switchings *list, const struct text_style *s);

/** What is shown: the rows with the advice, or the parts of the first row. */
struct bench_shown {
    const struct bench_result *result;
    const struct bench_parts *parts; /* NULL: the rows */
    const struct bench_advices *advice;
    double rate; /* of the advice */
};

void bench_view_text(struct sink *out, const struct bench_shown *shown, const struct text_style *style);
void bench_view_json(struct sink *out, const struct bench_shown *shown);
/** Adds what was dropped and lost. */
void bench_view_notes(struct buf *notes, const struct bench_result *r);

#endif
