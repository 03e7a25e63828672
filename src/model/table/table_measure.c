/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/table/table_measure.h"

/* Adds up these columns of a row. Returns false if a value is unknown or only a lower bound, as for an event that has
 * not ended. */
static bool measure(uint64_t columns, const struct table *t, uint32_t row, uint64_t *sum)
{
    *sum = 0;
    for (uint32_t i = 0; i < t->n_columns && i < 64; i++) {
        if (!(columns >> i & 1))
            continue;
        const struct table_value *v = table_at(t, row, i);
        if (!v->known || v->least)
            return false;
        *sum += v->whole;
    }
    return true;
}

void table_measure_add(struct table_measure *m, uint64_t columns, const struct table *t)
{
    uint64_t value;
    for (uint32_t row = 0; row < table_rows(t); row++) {
        if (!measure(columns, t, row, &value))
            continue;
        m->rows++;
        m->total += value;
        m->most = value > m->most ? value : m->most;
        m->slots[table_slot(value)]++;
    }
}

struct table *table_measure_table(const struct table_measure *m, const struct table_column *columns)
{
    struct table *t = table_new("sys-measured", 1, columns, MEASURE_COLUMNS);
    table_row(t);
    table_whole(t, MEASURE_ROWS, m->rows);
    table_whole(t, MEASURE_TOTAL, m->total);
    table_whole(t, MEASURE_MOST, m->most);
    table_histogram(t, MEASURE_HISTOGRAM, m->slots, TABLE_SLOTS);
    return t;
}
