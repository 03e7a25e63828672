/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_measured.h"

#include "view/table/table_view.h"

/* False: it is not known, as of what is still under way. */
static bool measure(const struct sys_measure *what, const struct table *t, uint32_t row, uint64_t *much)
{
    *much = 0;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        if (i >= 64 || !(what->columns >> i & 1))
            continue;
        const struct table_value *v = table_at(t, row, i);
        if (!v->known || v->least)
            return false;
        *much += v->whole;
    }
    return true;
}

void sys_measured_add(struct sys_measured *m, const struct sys_measure *what, const struct table *t)
{
    uint64_t much;
    for (uint32_t row = 0; row < table_rows(t); row++) {
        if (!measure(what, t, row, &much))
            continue;
        m->events++;
        m->total += much;
        m->most = much > m->most ? much : m->most;
        m->slots[table_slot(much)]++;
    }
}

void sys_measured_write(const struct sys_measured *m, const struct sys_measure *what, struct sink *out,
                        const struct text_style *style, bool json, uint64_t time_ns)
{
    struct table *t = table_new("sys-measured", 1, what->summary, SYS_SUMMARY_COLUMNS);
    table_row(t);
    table_whole(t, SYS_SUMMARY_EVENTS, m->events);
    table_whole(t, SYS_SUMMARY_TOTAL, m->total);
    table_whole(t, SYS_SUMMARY_MOST, m->most);
    table_histogram(t, SYS_SUMMARY_HISTOGRAM, m->slots, TABLE_SLOTS);
    if (json)
        table_view_json_row_at(out, t, 0, time_ns);
    else
        table_view_text(out, t, style);
    table_free(t);
}
