/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys_durations.h"

#include "view/table_view.h"

enum column { EVENTS, TOTAL, LONGEST, HISTOGRAM, N_COLUMNS };

static const struct table_column columns[] = {
    [EVENTS] = {"events", TABLE_COUNT, TABLE_WHOLE},
    [TOTAL] = {"duration", TABLE_DURATION, TABLE_WHOLE},
    [LONGEST] = {"longest", TABLE_DURATION, TABLE_WHOLE},
    [HISTOGRAM] = {"duration_histogram", TABLE_DURATION, TABLE_HISTOGRAM},
};

void sys_durations_add(struct sys_durations *d, const struct table *t, uint32_t column)
{
    for (uint32_t row = 0; row < table_rows(t); row++) {
        const struct table_value *v = table_at(t, row, column);
        /* One that is still under way has no duration yet. */
        if (!v->known || v->least)
            continue;
        d->events++;
        d->total_ns += v->whole;
        d->longest_ns = v->whole > d->longest_ns ? v->whole : d->longest_ns;
        d->slots[table_slot(v->whole)]++;
    }
}

void sys_durations_write(const struct sys_durations *d, struct sink *out, const struct text_style *style,
                         bool json, uint64_t time_ns)
{
    struct table *t = table_new("sys-durations", 1, columns, N_COLUMNS);
    table_row(t);
    table_whole(t, EVENTS, d->events);
    table_whole(t, TOTAL, d->total_ns);
    table_whole(t, LONGEST, d->longest_ns);
    table_histogram(t, HISTOGRAM, d->slots, TABLE_SLOTS);
    if (json)
        table_view_json_row_at(out, t, 0, time_ns);
    else
        table_view_text(out, t, style);
    table_free(t);
}
