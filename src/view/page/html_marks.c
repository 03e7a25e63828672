/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/html_marks.h"

#include <stdlib.h>

void html_marks_release(struct html_marks *m)
{
    open_spans_release(&m->open);
    vec_release(&m->rows);
    vec_release(&m->lost);
    map_release(&m->by_number);
}

void html_marks_choose(struct html_marks *m)
{
    m->n_open = m->open.len;
    open_spans_sort(&m->open);
    open_spans_cut(&m->open, HTML_MARKS_MOST);
    for (size_t i = 0; i < m->open.len; i++) {
        map_put_u64(&m->by_number, m->open.at[i].number, i, NULL);
        *vec_push(&m->rows) = UINT64_MAX;
    }
}

const struct open_span *html_marks_begins(struct html_marks *m, uint64_t number, uint64_t row)
{
    const size_t at = m->open.len ? map_get_u64(&m->by_number, number) : MAP_NONE;
    if (at == MAP_NONE)
        return NULL;
    m->rows.at[at] = row;
    return &m->open.at[at];
}

static void write_open(const struct html_marks *m, struct json *j, uint64_t began_ns, bool has_numbers)
{
    json_whole(j, "open_spans", m->n_open);
    open_spans_json(&m->open, j, "open", began_ns, has_numbers);
    json_open(j, "open_rows", '[');
    vec_each (const uint64_t, row, &m->rows)
        if (*row == UINT64_MAX)
            json_null(j, NULL);
        else
            json_whole(j, NULL, *row);
    json_close(j, ']');
}

/* ---- losses ---- */

static int by_cpu_and_time(const void *a, const void *b)
{
    const struct lost_stretch *x = a, *y = b;
    if (x->cpu != y->cpu)
        return x->cpu < y->cpu ? -1 : 1;
    return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

void html_marks_add_lost(struct html_marks *m, const struct event_losses *losses, uint64_t first_ns,
                         uint64_t last_ns, uint64_t step_ns)
{
    vec_each (const struct lost_stretch, s, &losses->stretches)
        if (s->to_ns >= first_ns && s->from_ns <= last_ns)
            *vec_push(&m->lost) = *s;
    if (m->lost.len)
        qsort(m->lost.at, m->lost.len, sizeof(*m->lost.at), by_cpu_and_time);
    size_t n = 0;
    vec_each (const struct lost_stretch, s, &m->lost) {
        struct lost_stretch next = *s, *before = n ? &m->lost.at[n - 1] : NULL;
        next.from_ns = next.from_ns < first_ns ? first_ns : next.from_ns;
        next.to_ns = next.to_ns > last_ns ? last_ns : next.to_ns;
        if (before && before->cpu == next.cpu && next.from_ns < before->to_ns + step_ns) {
            before->to_ns = next.to_ns > before->to_ns ? next.to_ns : before->to_ns;
            before->events += next.events;
        } else {
            m->lost.at[n++] = next;
        }
    }
    m->lost.len = n;
}

static void write_lost(const struct html_marks *m, struct json *j, uint64_t began_ns)
{
    json_open(j, "lost", '[');
    vec_each (const struct lost_stretch, s, &m->lost) {
        json_open(j, NULL, '{');
        json_whole(j, "cpu", s->cpu);
        json_whole(j, "from_ns", s->from_ns - began_ns);
        json_whole(j, "to_ns", s->to_ns - began_ns);
        json_whole(j, "events", s->events);
        json_close(j, '}');
    }
    json_close(j, ']');
}

void html_marks_write(const struct html_marks *m, struct page_blob *b, uint64_t began_ns, bool has_numbers)
{
    write_open(m, &b->json, began_ns, has_numbers);
    write_lost(m, &b->json, began_ns);
}
