/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_OPEN_SPANS_H
#define VIEW_OPEN_SPANS_H

/*
 * Spans of a trace that have begun and not ended, as a sentence and in JSON.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the names, until open_spans_release().
 */

#include "base/buf.h"
#include "base/vec.h"
#include "model/trace/event_spans.h"
#include "view/formats/json.h"

struct open_span {
    char *name;
    uint64_t began_ns,
        ended_ns;    /* CLOCK_MONOTONIC; `ended_ns`: when the trace, the thread or the program ended */
    uint64_t number; /* of the event with which it began, see struct span */
    pid_t pid;
    uint32_t thread, depth;
};

/* Zero at first. */
struct open_spans VEC(struct open_span);

/** Adds the spans of `change` that have not ended, are chosen (event_spans_choose()), and lasted at least until
 * `from_ns`. */
void open_spans_add(struct open_spans *s, const struct span_change *change, uint64_t from_ns);
/** Sorts the spans, the longest first. Call it after the last open_spans_add(). */
void open_spans_sort(struct open_spans *s);
/** Keeps the first `most`. */
void open_spans_cut(struct open_spans *s, size_t most);
/** Appends a sentence with the longest of them; nothing: there are none. `has_numbers`: their times are numbers of
 * events. */
void open_spans_note(const struct open_spans *s, struct buf *b, bool has_numbers);
/** Writes them as an array. `began_ns`: of the trace. */
void open_spans_json(const struct open_spans *s, struct json *j, const char *key, uint64_t began_ns,
                     bool has_numbers);
void open_spans_release(struct open_spans *s);

#endif
