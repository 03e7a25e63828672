/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_EVENT_COLUMNS_H
#define SYS_EVENT_COLUMNS_H

/* The first columns of every tool of events, and how they are filled from the head of an event. */

#include "sys/session.h"

enum event_columns_column {
    EVENT_COLUMNS_TIME,
    EVENT_COLUMNS_PID,
    EVENT_COLUMNS_TID,
    EVENT_COLUMNS_COMM,
    EVENT_COLUMNS_UID,
    EVENT_COLUMNS_CGROUP,
    EVENT_COLUMNS_CONTAINER,
    EVENT_COLUMNS_COLUMNS /* the tool's own columns follow */
};

/* clang-format off */
#define EVENT_COLUMNS_HEAD                                                                                          \
    [EVENT_COLUMNS_TIME] = {"time", TABLE_INSTANT, TABLE_WHOLE},                                                    \
    [EVENT_COLUMNS_PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},                                                        \
    [EVENT_COLUMNS_TID] = {"tid", TABLE_PLAIN, TABLE_WHOLE, .drop_rank = 7},                                        \
    [EVENT_COLUMNS_COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT, .width = SYS_COMM_BYTES - 1},                          \
    [EVENT_COLUMNS_UID] = {"uid", TABLE_PLAIN, TABLE_WHOLE, .drop_rank = 9},                                        \
    [EVENT_COLUMNS_CGROUP] = {"cgroup", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 8},                                   \
    [EVENT_COLUMNS_CONTAINER] = {SYS_CONTAINER, .drop_rank = 6}
/* clang-format on */

/** Begins a row and fills the columns above. */
void event_columns_row(struct sys_session *s, struct table *t, const struct sys_event *e);
/** For the measure of a tool whose column DURATION has the time of each event. */
extern const struct table_column event_columns_durations[MEASURE_COLUMNS];
/** Returns the name of an enum memcg_limit. */
const char *event_columns_limit_word(uint32_t limit);

#endif
