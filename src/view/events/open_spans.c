/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/events/open_spans.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/units.h"
#include "view/events/span_name.h"
#include "view/text/text.h"

#define SAID 3 /* spans in the sentence */

void open_spans_release(struct open_spans *s)
{
    open_spans_cut(s, 0);
    vec_release(s);
}

/* The spans of a thread come one after the other, the innermost first. */
static uint32_t depth_of(const struct span_change *change, size_t at)
{
    uint32_t around = 0;
    while (at + around + 1 < change->n_unfinished &&
           change->unfinished[at + around + 1].thread == change->unfinished[at].thread)
        around++;
    return around;
}

void open_spans_add(struct open_spans *s, const struct span_change *change, uint64_t from_ns)
{
    for (size_t i = 0; i < change->n_unfinished; i++) {
        const struct span *span = &change->unfinished[i];
        if (!span->chosen || span->ended_ns < from_ns)
            continue;
        *vec_push(s) = (struct open_span){.name = mem_strdup(span_name(span, NULL)),
                                          .began_ns = span->began_ns,
                                          .ended_ns = span->ended_ns,
                                          .number = span->number,
                                          .pid = span->pid,
                                          .thread = span->thread,
                                          .depth = depth_of(change, i)};
    }
}

static int by_length(const void *a, const void *b)
{
    const struct open_span *x = a, *y = b;
    const uint64_t of_x = x->ended_ns - x->began_ns, of_y = y->ended_ns - y->began_ns;
    if (of_x != of_y)
        return of_x < of_y ? 1 : -1;
    return x->number < y->number ? -1 : x->number > y->number;
}

void open_spans_sort(struct open_spans *s)
{
    if (s->len)
        qsort(s->at, s->len, sizeof(*s->at), by_length);
}

void open_spans_cut(struct open_spans *s, size_t most)
{
    while (s->len > most)
        free(s->at[--s->len].name);
}

void open_spans_note(const struct open_spans *s, struct buf *b, bool has_numbers)
{
    static const struct text_style utf8 = {.utf8 = true};
    char took[UNITS_TEXT_BYTES];
    if (!s->len)
        return;
    buf_printf(b, "%zu span%s begun and not ended: ", s->len, s->len == 1 ? " has" : "s have");
    for (size_t i = 0; i < s->len && i < SAID; i++) {
        const struct open_span *o = &s->at[i];
        buf_addstr(b, i ? ", " : "");
        text_add_name(b, &utf8, o->name);
        buf_printf(b, " of thread %" PRIu32, o->thread);
        if (!has_numbers)
            buf_printf(b, ", open for %s", units_format_duration(took, (double)(o->ended_ns - o->began_ns)));
    }
    buf_addstr(b, s->len > SAID ? ", ..." : "");
}

void open_spans_json(const struct open_spans *s, struct json *j, const char *key, uint64_t began_ns,
                     bool has_numbers)
{
    json_open(j, key, '[');
    vec_each (const struct open_span, o, s) {
        json_open(j, NULL, '{');
        json_text(j, "name", o->name);
        json_signed(j, "process", o->pid);
        json_whole(j, "thread", o->thread);
        if (has_numbers) {
            json_null(j, "since_began_ns");
            json_null(j, "duration_ns");
        } else {
            json_whole(j, "since_began_ns", o->began_ns - began_ns);
            json_whole(j, "duration_ns", o->ended_ns - o->began_ns);
        }
        json_whole(j, "depth", o->depth);
        json_close(j, '}');
    }
    json_close(j, ']');
}
