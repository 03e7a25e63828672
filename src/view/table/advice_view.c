/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/table/advice_view.h"

#include <string.h>

#include "base/units.h"
#include "view/formats/json.h"
#include "view/text/notes.h"

#define INDENT 11u /* of the texts below a measure: behind "    costs  " */

static size_t shown(const struct advice_view *v, const struct advice *a)
{
    return v->top && v->top < a->measures.len ? v->top : a->measures.len;
}

/* "12.3 MiB", or "12.3 MiB to 14.5 MiB" */
static void add_range(struct buf *b, int64_t low, uint64_t high)
{
    char least[UNITS_TEXT_BYTES], most[UNITS_TEXT_BYTES];
    units_format_size(least, low < 0 ? -(double)low : (double)low);
    units_format_size(most, (double)high);
    buf_printf(b, "%s%s", low < 0 ? "-" : "", least);
    if (low < 0 || strcmp(least, most) != 0)
        buf_printf(b, " to %s", most);
}

static size_t reclaimable(const struct advice *a)
{
    size_t n = 0;
    vec_each (const struct advice_measure, m, &a->measures)
        n += m->reclaimable;
    return n;
}

static void write_heading(struct sink *out, const struct advice_view *v, const struct advice *a)
{
    char size[UNITS_TEXT_BYTES];
    struct buf b = BUF_INIT;
    text_add_name(&b, &v->style, v->source ? v->source : "this machine");
    if (v->release) {
        buf_addstr(&b, ", Linux ");
        text_add_name(&b, &v->style, v->release);
    }
    if (v->source && text_instant_known(v->time_ns)) {
        buf_addstr(&b, ", at ");
        text_add_instant(&b, v->time_ns);
    }
    buf_addstr(&b, ": ");
    text_add_number(&b, a->measures.len - reclaimable(a), "measure");
    buf_addstr(&b, ", together ");
    add_range(&b, a->low_bytes, a->high_bytes);
    if (v->memory_bytes)
        buf_printf(&b, " of %s", units_format_size(size, (double)v->memory_bytes));
    sink_printf(out, "%s\n", buf_str(&b));
    buf_release(&b);
}

static void write_part(struct sink *out, const struct advice_view *v, const char *label, const char *text)
{
    struct buf b = BUF_INIT;
    text_add_name(&b, &v->style, text);
    text_paragraph(out, &v->style, label, INDENT, buf_str(&b));
    buf_release(&b);
}

static void write_measure(struct sink *out, const struct advice_view *v, const struct advice_measure *m,
                          size_t i)
{
    struct buf b = BUF_INIT;
    sink_printf(out, "\n%zu. %s", i + 1, text_begin(&v->style, TEXT_STRONG));
    add_range(&b, m->low_bytes, m->high_bytes);
    buf_addstr(&b, ": ");
    text_add_name(&b, &v->style, m->change);
    sink_printf(out, "%s%s\n", buf_str(&b), text_end(&v->style, TEXT_STRONG));
    buf_release(&b);
    if (m->instead_of != ADVICE_NONE) {
        buf_printf(&b, "not possible together with measure %zu; the total counts only that one",
                   m->instead_of + 1);
        write_part(out, v, "    note", buf_str(&b));
        buf_release(&b);
    }
    write_part(out, v, "    saves", m->formula);
    vec_each (char *const, row, &m->rows)
        write_part(out, v, row == m->rows.at ? "    from" : "", *row);
    write_part(out, v, "    costs", m->cost);
}

void advice_view_text(struct sink *out, const struct advice_view *v, const struct advice *a,
                      struct buf *notes)
{
    const size_t n = shown(v, a);
    write_heading(out, v, a);
    for (size_t i = 0; i < n; i++) {
        if (a->measures.at[i].reclaimable && (!i || !a->measures.at[i - 1].reclaimable))
            sink_printf(out, "\nNot in the total, as memory pressure empties these caches anyhow:\n");
        write_measure(out, v, &a->measures.at[i], i);
    }
    if (n < a->measures.len)
        notes_add(notes, "%zu of %zu measures are shown; --top 0 shows all", n, a->measures.len);
    vec_each (char *const, sentence, &a->unknown)
        notes_add(notes, "not judged: %s", *sentence);
}

static void write_json_measure(struct json *j, const struct advice_measure *m, size_t i)
{
    json_open(j, NULL, '{');
    json_whole(j, "number", i + 1);
    json_text(j, "kind", advice_kind_name(m->kind));
    json_text(j, "change", m->change);
    json_signed(j, "low_bytes", m->low_bytes);
    json_whole(j, "high_bytes", m->high_bytes);
    json_text(j, "formula", m->formula);
    json_text(j, "cost", m->cost);
    json_open(j, "from", '[');
    vec_each (char *const, row, &m->rows)
        json_text(j, NULL, *row);
    json_close(j, ']');
    json_flag(j, "counted", m->counted);
    json_flag(j, "reclaimable", m->reclaimable);
    if (m->instead_of == ADVICE_NONE)
        json_null(j, "excludes_number");
    else
        json_whole(j, "excludes_number", m->instead_of + 1);
    json_close(j, '}');
}

void advice_view_json(struct sink *out, const struct advice_view *v, const struct advice *a)
{
    const size_t n = shown(v, a);
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "allium-sys-advise");
    json_whole(&j, "version", 1);
    json_text(&j, "source", v->source);
    json_text(&j, "release", v->release);
    json_instant(&j, "time_ns", v->time_ns);
    if (v->memory_bytes)
        json_whole(&j, "memory_bytes", v->memory_bytes);
    else
        json_null(&j, "memory_bytes");
    json_signed(&j, "low_bytes", a->low_bytes);
    json_whole(&j, "high_bytes", a->high_bytes);
    json_whole(&j, "measures_in_all", a->measures.len);
    json_open(&j, "measures", '[');
    for (size_t i = 0; i < n; i++)
        write_json_measure(&j, &a->measures.at[i], i);
    json_close(&j, ']');
    json_open(&j, "not_judged", '[');
    vec_each (char *const, sentence, &a->unknown)
        json_text(&j, NULL, *sentence);
    json_close(&j, ']');
    json_close(&j, '}');
}
