/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_EVENT_COLUMNS_H
#define SYS_EVENT_COLUMNS_H

/*
 * The columns with which every tool of events begins, and how they are filled from the head of an event.
 *
 * Runs in: the tool.
 */

#include "sys/session.h"

enum events_column {
    EVENTS_TIME,
    EVENTS_PID,
    EVENTS_TID,
    EVENTS_COMM,
    EVENTS_UID,
    EVENTS_CGROUP,
    EVENTS_CONTAINER,
    EVENTS_COLUMNS /* the tool's own begin here */
};

/* clang-format off */
#define EVENTS_HEAD                                                                                          \
    [EVENTS_TIME] = {"time", TABLE_INSTANT, TABLE_WHOLE},                                                    \
    [EVENTS_PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},                                                        \
    [EVENTS_TID] = {"tid", TABLE_PLAIN, TABLE_WHOLE, .drop = 7},                                             \
    [EVENTS_COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT, .width = SYS_COMM_BYTES - 1},                                                       \
    [EVENTS_UID] = {"uid", TABLE_PLAIN, TABLE_WHOLE, .drop = 9},                                             \
    [EVENTS_CGROUP] = {"cgroup", TABLE_PLAIN, TABLE_TEXT, .drop = 8},                                        \
    [EVENTS_CONTAINER] = {SYS_CONTAINER, .drop = 6}
/* clang-format on */

/** Begins a row and fills the columns above. */
void events_row(struct sys_session *s, struct table *t, const struct sys_event *e);
/** How an enum memcg_limit is called. */
const char *events_limit_word(uint32_t limit);

#endif
