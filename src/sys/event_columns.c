/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/event_columns.h"

#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "bpf/memcg.h"
#include "sys/resolver.h"

/* What the wall clock said at that moment of the kernel's; set clocks are followed. */
static uint64_t wall_ns(uint64_t monotonic_ns)
{
    return clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_MONOTONIC) - monotonic_ns);
}

const struct table_column event_columns_durations[MEASURE_COLUMNS] = {
    [MEASURE_ROWS] = {"events", TABLE_COUNT, TABLE_WHOLE},
    [MEASURE_TOTAL] = {"duration", TABLE_DURATION, TABLE_WHOLE},
    [MEASURE_MOST] = {"longest", TABLE_DURATION, TABLE_WHOLE},
    [MEASURE_HISTOGRAM] = {"duration_histogram", TABLE_DURATION, TABLE_HISTOGRAM},
};

void event_columns_row(struct sys_session *s, struct table *t, const struct sys_event *e)
{
    table_row(t);
    table_whole(t, EVENT_COLUMNS_TIME, wall_ns(e->time_ns));
    table_whole(t, EVENT_COLUMNS_PID, e->task.pid);
    table_whole(t, EVENT_COLUMNS_TID, e->task.tid);
    table_text(t, EVENT_COLUMNS_COMM, e->task.comm);
    table_whole(t, EVENT_COLUMNS_UID, e->task.uid);
    resolver_cgroup(s, t, EVENT_COLUMNS_CGROUP, EVENT_COLUMNS_CONTAINER, e->task.cgroup);
}

const char *event_columns_limit_word(uint32_t limit)
{
    return limit == MEMCG_MEMORY_AND_SWAP ? "memory+swap" : "memory";
}
