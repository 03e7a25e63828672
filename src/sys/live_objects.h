/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_LIVE_OBJECTS_H
#define SYS_LIVE_OBJECTS_H

/*
 * Live objects, by row (--live). A tool's programs keep each object with its row's key in a map until it is
 * freed; this file adds them up whenever rows are made.
 */

#include "sys/session.h"

struct live;

/**
 * Called before loading. The programs follow objects if --live, or the option for their number, is given;
 * else their map gets no memory. Returns -EINVAL with a line if an option is invalid.
 */
int live_objects_ready(struct sys_session *s, struct error *e);
void live_objects_free(struct live *l);

/** Adds up the objects that are live now. */
void live_objects_gather(struct sys_session *s);
/** Fills the columns of the table's last row, which has that key; does nothing if no objects are followed. */
void live_objects_row(struct sys_session *s, struct table *t, const void *key);
/** Adds rows for keys with live objects and no events. */
void live_objects_rest(struct sys_session *s, struct table *t);

#endif
