/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/memcg/memcg_table.h"

#include <math.h>
#include <unistd.h>

/* Pages are counted to the page, but the counts of processors are added up in lots of 64. */
#define CHARGE_TOLERANCE 0.02

static const struct table_column columns[MEMCG_COLUMNS] = {
    [MEMCG_OPERATION] = {"operation", TABLE_PLAIN, TABLE_TEXT},
    [MEMCG_MEANING] = {"meaning", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 4},
    [MEMCG_ROOT_NS] = {"root", TABLE_DURATION, TABLE_REAL},
    [MEMCG_OWN_NS] = {"memcg", TABLE_DURATION, TABLE_REAL},
    [MEMCG_RATIO] = {"ratio", TABLE_PLAIN, TABLE_REAL},
    [MEMCG_RATIO_LOW] = {"ratio_low", TABLE_PLAIN, TABLE_REAL, "low"},
    [MEMCG_RATIO_HIGH] = {"ratio_high", TABLE_PLAIN, TABLE_REAL, "high"},
    [MEMCG_MORE_NS] = {"more", TABLE_DURATION, TABLE_REAL},
    [MEMCG_MORE_LOW_NS] = {"more_low", TABLE_DURATION, TABLE_REAL, "low"},
    [MEMCG_MORE_HIGH_NS] = {"more_high", TABLE_DURATION, TABLE_REAL, "high"},
    [MEMCG_PROFILED_NS] = {"profiled", TABLE_DURATION, TABLE_REAL, .hide_if_empty = true},
    [MEMCG_PROFILED_RATIO] = {"profiled_ratio", TABLE_PLAIN, TABLE_REAL, "ratio", .hide_if_empty = true},
    [MEMCG_PROFILED_LOW] = {"profiled_ratio_low", TABLE_PLAIN, TABLE_REAL, "low", .hide_if_empty = true},
    [MEMCG_PROFILED_HIGH] = {"profiled_ratio_high", TABLE_PLAIN, TABLE_REAL, "high", .hide_if_empty = true},
    [MEMCG_CHARGED_BYTES] = {"charged", TABLE_BYTES, TABLE_REAL},
    [MEMCG_HELD] = {"held", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 3},
    [MEMCG_REMAINING_BYTES] = {"remaining", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 3},
    [MEMCG_TURNS] = {"turns", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 1},
    [MEMCG_DROPPED] = {"dropped", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 2},
    [MEMCG_UNAVAILABLE] = {"unavailable", TABLE_PLAIN, TABLE_TEXT, .wrap = true, .hide_if_empty = true},
    [MEMCG_VERSION] = {"cgroup_version", TABLE_PLAIN, TABLE_WHOLE},
    [MEMCG_UNPROFILED] = {"profiling_unavailable", TABLE_PLAIN, TABLE_TEXT},
};

/* Sets a value that is known: too few turns have no interval. */
static void set(struct table *t, enum memcg_column column, double value)
{
    if (isfinite(value))
        table_real(t, column, value);
}

/* A ratio has as many digits as a reader needs. */
static void set_ratio(struct table *t, enum memcg_column first, const struct memcg_median *ratio)
{
    const double values[] = {ratio->value, ratio->interval.low, ratio->interval.high};
    for (unsigned i = 0; i < 3; i++)
        set(t, first + i, round(values[i] * 1000) / 1000);
}

static void set_times(struct table *t, const struct memcg_cost_row *row, bool profiled)
{
    const struct memcg_median *more = &row->more_ns[MEMCG_COST_OWN];
    set(t, MEMCG_ROOT_NS, row->ns[MEMCG_COST_ROOT].value);
    set(t, MEMCG_OWN_NS, row->ns[MEMCG_COST_OWN].value);
    set_ratio(t, MEMCG_RATIO, &row->ratio[MEMCG_COST_OWN]);
    set(t, MEMCG_MORE_NS, more->value);
    set(t, MEMCG_MORE_LOW_NS, more->interval.low);
    set(t, MEMCG_MORE_HIGH_NS, more->interval.high);
    if (!profiled)
        return;
    set(t, MEMCG_PROFILED_NS, row->ns[MEMCG_COST_PROFILED].value);
    set_ratio(t, MEMCG_PROFILED_RATIO, &row->ratio[MEMCG_COST_PROFILED]);
}

static unsigned version_of(const struct memcg_cost *cost)
{
    return cost->hierarchy == CGROUP_V2 ? 2 : 1;
}

struct table *memcg_table_new(const struct memcg_cost *cost)
{
    struct table *t = table_new("bench-memcg", 1, columns, MEMCG_COLUMNS);
    for (size_t i = 0; i < MEMCG_COST_ROWS; i++) {
        const struct memcg_cost_row *row = &cost->rows[i];
        table_row(t);
        table_text(t, MEMCG_OPERATION, row->kind->name);
        table_text(t, MEMCG_MEANING, row->kind->does);
        table_whole(t, MEMCG_VERSION, version_of(cost));
        if (cost->profiling.text[0])
            table_text(t, MEMCG_UNPROFILED, cost->profiling.text);
        if (row->held) {
            set(t, MEMCG_CHARGED_BYTES, (double)row->charged_bytes / row->held);
            table_whole(t, MEMCG_HELD, row->held);
            table_whole(t, MEMCG_REMAINING_BYTES, row->remaining_bytes);
        }
        table_whole(t, MEMCG_DROPPED, row->turns_dropped);
        table_whole(t, MEMCG_TURNS, row->turns);
        if (row->turns)
            set_times(t, row, !cost->profiling.text[0]);
        if (row->unavailable.text[0])
            table_text(t, MEMCG_UNAVAILABLE, row->unavailable.text);
    }
    return t;
}

static void note_charges(const struct memcg_cost_row *row, struct buf *out)
{
    const double each = row->held ? (double)row->charged_bytes / row->held : 0;
    const double page = (double)sysconf(_SC_PAGESIZE);
    if (!row->held)
        return;
    if (!row->charged_bytes)
        buf_printf(out, "%s: the cgroup was charged nothing%s.\n", row->kind->name,
                   row->kind->part == MEMCG_KERNEL
                       ? "; the kernel may have been booted with cgroup.memory=nokmem"
                       : "");
    else if (row->kind->pages && fabs(each / page - 1) > CHARGE_TOLERANCE)
        buf_printf(out, "%s: the cgroup was charged %.0f B for each page of %.0f B.\n", row->kind->name, each,
                   page);
}

void memcg_table_notes(const struct memcg_cost *cost, struct buf *out)
{
    buf_printf(out,
               "The root cgroup against one of its own, cgroup v%u, in turns; low and high: the 95 %% "
               "interval of the "
               "median.\n",
               version_of(cost));
    buf_addstr(out, "charged: bytes of memory for each that is held, by the counters of the cgroup.\n");
    for (size_t i = 0; i < MEMCG_COST_ROWS; i++)
        note_charges(&cost->rows[i], out);
    buf_addstr(
        out,
        "Published by the authors of memory allocation profiling, for allocations alone and not for whole "
        "system calls as here: profiling + 36 % on slab, + 26 % on pages; memory cgroups \"ten times\" "
        "that.\n");
    if (cost->profiling.text[0])
        buf_printf(out, "Memory allocation profiling was not measured: %s.\n", cost->profiling.text);
}
